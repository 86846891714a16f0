// Elements from code. Text goes in as text nodes only: nothing that comes from a capture is ever parsed as markup.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: never) => void) | undefined>;

const SVG = 'http://www.w3.org/2000/svg';

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value as EventListener);
    else if (name === 'style') (element as HTMLElement).style.cssText = String(value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === 'number' ? String(child) : child);
  }
}

/** An HTML element: attributes (functions are listeners), then children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. */
export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag) as SVGElement;
  fill(element, attributes, children);
  return element;
}

/** A text whose parts between backticks are code. */
export function coded(text: string): Child[] {
  return text
    .split(/(`[^`]+`)/)
    .map(part => (part.startsWith('`') && part.length > 2 ? h('code', {}, part.slice(1, -1)) : part));
}

/** Where there is more than fits, the keyboard gets there, too. */
const reached = new ResizeObserver(entries => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.setAttribute('tabindex', '0');
    else target.removeAttribute('tabindex');
  }
});

/** It may be wider than the page, and scrolls by itself: by pointer and by keys. */
export function reachable<T extends HTMLElement>(element: T, label: string): T {
  element.setAttribute('role', 'region');
  element.setAttribute('aria-label', label);
  reached.observe(element);
  return element;
}

/** Something in a box that scrolls. */
export function scroll(label: string, ...children: Child[]): HTMLElement {
  return reachable(h('div', { class: 'scroll' }, ...children), label);
}

const variables = new Map<string, string>();

/** The value of a CSS variable; asked of the browser once, since a graph asks a thousand times. */
export function css(name: string): string {
  let value = variables.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    variables.set(name, value);
  }
  return value;
}

/** After a change of colours. */
export function forgetVariables(): void {
  variables.clear();
}
