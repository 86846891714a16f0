// The little Markdown that the pages of docs/causes use, turned into elements.

import { h, reachable, scroll } from './dom';

export function markdown(text: string): DocumentFragment {
  const out = document.createDocumentFragment();
  const lines = text.split('\n');
  let i = 0;
  const paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length) out.append(inline(h('p'), paragraph.join(' ')));
    paragraph.length = 0;
  };
  while (i < lines.length) {
    const line = lines[i];
    if (line.startsWith('```')) {
      flush();
      const code: string[] = [];
      for (i++; i < lines.length && !lines[i].startsWith('```'); i++) code.push(lines[i]);
      out.append(reachable(h('pre', {}, code.join('\n')), 'commands'));
    } else if (/^#+ /.test(line)) {
      flush();
      const level = line.indexOf(' ');
      // The heading of the page stands above it already.
      if (level > 1) out.append(inline(h('h4'), line.slice(level + 1)));
    } else if (/^!\[[^\]]*\]\([^)]*\)\s*$/.test(line)) {
      // Figures live beside the pages, not in here.
      flush();
    } else if (line.startsWith('|')) {
      flush();
      const table = h('table');
      for (; i < lines.length && lines[i].startsWith('|'); i++) {
        if (/^[|\s:-]+$/.test(lines[i])) continue;
        const cells = lines[i].split('|').slice(1, -1);
        const tag = table.rows.length ? 'td' : 'th';
        table.append(h('tr', {}, ...cells.map(c => inline(h(tag), c.trim()))));
      }
      out.append(scroll('table', table));
      continue;
    } else if (/^- /.test(line)) {
      flush();
      const list = h('ul');
      while (i < lines.length && /^(- | {2,}\S)/.test(lines[i])) {
        const item = [lines[i++].replace(/^\s*- /, '')];
        while (i < lines.length && /^ +\S/.test(lines[i])) item.push(lines[i++].trim());
        list.append(inline(h('li'), item.join(' ')));
      }
      out.append(list);
      continue;
    } else if (line.trim() === '') {
      flush();
    } else {
      paragraph.push(line.trim());
    }
    i++;
  }
  flush();
  return out;
}

function inline<T extends HTMLElement>(element: T, text: string): T {
  for (const part of text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]*\))/)) {
    if (part.startsWith('`')) element.append(h('code', {}, part.slice(1, -1)));
    else if (part.startsWith('**')) element.append(h('strong', {}, part.slice(2, -2)));
    else if (/^\[[^\]]+\]\(/.test(part)) element.append(part.slice(1, part.indexOf(']')));
    else if (part) element.append(part);
  }
  return element;
}
