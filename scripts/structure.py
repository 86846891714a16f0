#!/usr/bin/env python3
"""Holds the source to the shape that ARCHITECTURE.md promises.

    scripts/structure.py [--self-test]

- A crate depends on the crates that the written line names, no more and no fewer.
- No modules of a crate import each other in a circle. A folder counts as one module to its neighbours; what a module and
  its own submodules say to each other is their own affair. Tests are left out.
- What the analysis keeps, types that are not part of its answer, has its fields written in its own module alone. (By the names
  of fields: one that other types have as well is not looked for.)
- Sizes: functions of at most LONGEST lines, 95 of 100 of at most USUAL; files of at most FILE lines. Tests and scripts are
  held to FILE, scripts to LONGEST as well.
"""

import ast
import glob
import os
import re
import sys
import tomllib

import common

LONGEST, USUAL, FILE = 100, 40, 500


def read(*path):
    with open(os.path.join(common.ROOT, *path), encoding='utf8') as f:
        return f.read()


# --- crates


def written():
    """The line of crates in ARCHITECTURE.md: each with the set of those that it may use."""
    line = re.search(r'^    (base \|.*\n(?:    .*\n)*)', read('ARCHITECTURE.md'), re.M).group(1)
    crates = {name: set(re.findall(r'\w+', deps)) for name, deps in re.findall(r'(\w+)(?: \(([\w, ]+)[^)]*\))?', line)}
    return {name: set(crates) - {name} if deps >= {'all', 'of', 'them'} else deps for name, deps in crates.items()}


def declared():
    """What the manifests say; dependencies of tests left out."""
    out = {}
    for path in glob.glob(os.path.join(common.ROOT, 'crates', '*', 'Cargo.toml')):
        manifest = tomllib.loads(read(path))
        tables = [manifest, *manifest.get('target', {}).values()]
        names = {name for table in tables for name in table.get('dependencies', {})}
        out[os.path.basename(os.path.dirname(path))] = {
            n.removeprefix('tcpwhy-') for n in names if n.startswith('tcpwhy-')
        }
    return out


def edges():
    """Sentences about crates that use what they may not, or no longer use what they may."""
    line, manifests = written(), declared()
    for name in sorted(line.keys() ^ manifests.keys()):
        where = 'ARCHITECTURE.md' if name in line else 'crates/'
        yield f'crate {name}: only {where} knows it'
    for name in sorted(line.keys() & manifests.keys()):
        for other in sorted(line[name] ^ manifests[name]):
            verb = 'uses' if other in manifests[name] else 'does not use'
            yield f'crate {name} {verb} {other}, and ARCHITECTURE.md says otherwise'


# --- text of Rust


def plain(text):
    """The text without comments, strings and modules of tests; line breaks stay."""

    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))

    text = re.sub(
        r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'', blank, text, flags=re.S
    )
    for start in re.finditer(r'#\[cfg\(test\)\]\s*mod \w+ \{', text):
        end = closing(text, start.end() - 1)
        text = text[: start.start()] + blank(re.match('.*', text[start.start() : end], re.S)) + text[end:]
    return text


def closing(text, at):
    """Behind the brace that closes the one at this place."""
    depth = 0
    for brace in re.finditer('[{}]', text[at:]):
        depth += 1 if brace.group(0) == '{' else -1
        if depth == 0:
            return at + brace.end()
    return len(text)


def leaves(tree, before=()):
    """The paths of a use tree: `a::{b, c::{d, self}}` has a::b, a::c::d and a::c; with the name that each gets."""
    tree = tree.strip()
    brace = tree.find('{')
    if brace < 0:
        path, _, name = tree.partition(' as ')
        steps = before + tuple(s.strip() for s in path.split('::') if s.strip())
        if steps and steps[-1] == 'self' and len(steps) > 1:
            steps = steps[:-1]
        if steps:
            yield steps, (name.strip() or steps[-1])
        return
    steps = before + tuple(s.strip() for s in tree[:brace].split('::') if s.strip())
    depth, part = 0, ''
    for c in tree[brace + 1 : tree.rfind('}')] + ',':
        depth += (c == '{') - (c == '}')
        if c == ',' and depth == 0:
            yield from leaves(part, steps) if part.strip() else ()
            part = ''
        else:
            part += c


class Module:
    """A file of a crate: where it stands, what it imports, which paths it names, what it declares itself."""

    def __init__(self, place, text):
        self.place, self.text = place, plain(text)
        self.imports = [leaf for use in re.findall(r'\buse\s+([^;]+);', self.text) for leaf in leaves(use)]
        body = re.sub(r'\buse\s+[^;]+;', '', self.text)
        self.named = [tuple(p.split('::')) for p in re.findall(r'\b((?:crate|super|self)(?:::\w+)+)', body)]
        self.declared = set(
            re.findall(r'\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+(\w+)', body)
        )


def modules(crate):
    """The modules of a crate by their places, without those of tests."""
    root, out = os.path.join(common.ROOT, 'crates', crate, 'src'), {}
    for path in glob.glob(os.path.join(root, '**', '*.rs'), recursive=True):
        steps = os.path.relpath(path, root).removesuffix('.rs').split(os.sep)
        if steps[-1] in ('mod', 'lib', 'main'):
            steps.pop()
        if 'tests' not in steps:
            out[tuple(steps)] = Module(tuple(steps), read(path))
    return out


def resolve(known, place, path, depth=0):
    """The module that holds what `path` means in the module at `place`; None where it leaves the crate."""
    steps, here = list(path), place
    if steps[0] == 'crate':
        here, steps = (), steps[1:]
    elif steps[0] in ('self', 'super'):
        while steps and steps[0] in ('self', 'super'):
            here = here[:-1] if steps[0] == 'super' else here
            steps = steps[1:]
    elif here + (steps[0],) not in known:
        return None
    while steps and here + (steps[0],) in known:
        here, steps = here + (steps[0],), steps[1:]
    if not steps or here not in known or steps[0] in known[here].declared or depth > 8:
        return here
    # it may stand there only because it was imported from elsewhere
    for target, name in known[here].imports:
        if name == steps[0] and target != path:
            found = resolve(known, here, target, depth + 1)
            return here if found is None else found
    for target, name in known[here].imports:
        if name == '*':
            found = resolve(known, here, target[:-1], depth + 1)
            if found is not None and found in known and steps[0] in known[found].declared:
                return found
    return here


def uses(known):
    """Which neighbour uses which: for each folder the edges between what stands in it, with an example."""
    out = {}
    for place, module in known.items():
        for path in [target for target, _ in module.imports] + module.named:
            if path[-1] == '*':
                path = path[:-1]
            there = resolve(known, place, path)
            if there is None or there[: len(place)] == place or place[: len(there)] == there:
                continue
            common_steps = next(i for i, (a, b) in enumerate(zip(place, there)) if a != b)
            folder, ends = place[:common_steps], (place[: common_steps + 1], there[: common_steps + 1])
            out.setdefault(folder, {}).setdefault(ends[0], {}).setdefault(ends[1], ('::'.join(place), '::'.join(path)))
    return out


def circle(graph):
    """A shortest circle of a graph, or None."""
    best = None
    for start in graph:
        seen, waiting = {start: None}, [start]
        for node in waiting:
            for to in graph.get(node, ()):
                if to == start:
                    path = [node]
                    while seen[path[-1]] is not None:
                        path.append(seen[path[-1]])
                    if best is None or len(path) < len(best):
                        best = path[::-1]
                    break
                if to not in seen:
                    seen[to] = node
                    waiting.append(to)
    return best


def circles(crate):
    """A sentence for each folder whose modules use each other in a circle."""
    for graph in uses(modules(crate)).values():
        while found := circle(graph):
            steps = [(a, b, graph[a][b]) for a, b in zip(found, found[1:] + found[:1])]
            yield f'{crate}: circle ' + ', '.join(
                f'{"::".join(a)} uses {"::".join(b)} ({where}: {what})' for a, b, (where, what) in steps
            )
            # one finding for each: the edge that closed it is taken out, and the rest looked at again
            del graph[steps[-1][0]][steps[-1][1]]


# --- who writes what


def fields(text):
    """(is the type public, its name, field, is the field open) of each struct."""
    for found in re.finditer(r'(pub(?:\([^)]*\))? )?struct (\w+)[^;{(]*\{', text):
        body = text[found.end() : closing(text, found.end() - 1) - 1]
        for field in re.finditer(r'(?m)^\s*(pub(?:\([^)]*\))? )?(\w+):', body):
            yield found.group(1) == 'pub ', found.group(2), field.group(2), bool(field.group(1))


def written_fields(text):
    """Fields that are assigned to, or borrowed to be changed."""
    assigned = r'\.(\w+)(?:\[[^\]]*\]|\.\d+)*\s*(?:[-+*/|&^]|<<|>>)?=(?![=>])'
    for found in re.finditer(assigned + r'|&mut \w+(?:\.\w+)*\.(\w+)\b(?![(.])', text):
        yield found.group(1) or found.group(2)


def foreign_writes(crate, others=()):
    """A sentence for each field that is written outside of the folder its type is declared in."""
    return foreign_writes_in(modules(crate), [m.text for other in others for m in modules(other).values()])


def foreign_writes_in(known, other_texts):
    known = {place: module for place, module in known.items() if place}
    answers = {field for text in other_texts for _, _, field, _ in fields(text)}
    open_fields, own = {}, {}
    for place, module in known.items():
        for public, name, field, is_open in fields(module.text):
            own.setdefault(place[0], set()).add(field)
            if public:
                answers.add(field)
            elif is_open:
                open_fields.setdefault(field, {})[place[0]] = f'{"::".join(place)}::{name}'
    for place, module in sorted(known.items()):
        for field in written_fields(module.text):
            homes = open_fields.get(field, {})
            if homes and field not in answers and field not in own.get(place[0], ()):
                yield f'{"::".join(place)} writes .{field} of {", ".join(sorted(homes.values()))}'


# --- sizes


def functions(text):
    """Name and lines of each function that has a body."""
    for found in re.finditer(r'\bfn\s+(\w+)', text):
        body = re.compile(r'[{;]').search(text, found.end())
        # a semicolon within brackets is that of an array
        while (
            body
            and body.group(0) == ';'
            and text.count('[', found.end(), body.start()) > text.count(']', found.end(), body.start())
        ):
            body = re.compile(r'[{;]').search(text, body.end())
        if body and body.group(0) == '{':
            yield found.group(1), text.count('\n', found.start(), closing(text, body.start())) + 1


def sizes():
    """Sentences about what is too large, and one that sums up."""
    lengths, wrong = [], []
    for path in sorted(glob.glob(os.path.join(common.ROOT, 'crates', '*', 'src', '**', '*.rs'), recursive=True)):
        shown = os.path.relpath(path, common.ROOT)
        if 'tests' in shown.removesuffix('.rs').split(os.sep):
            continue
        text = plain(read(path))
        lines = len(text.rstrip().splitlines())
        if lines > FILE:
            wrong.append(f'{shown}: {lines} lines, at most {FILE}')
        for name, n in functions(text):
            lengths.append(n)
            if n > LONGEST:
                wrong.append(f'{shown}: fn {name} has {n} lines, at most {LONGEST}')
    lengths.sort()
    p95 = lengths[int(0.95 * (len(lengths) - 1))]
    if p95 > USUAL:
        wrong.append(f'95 of 100 functions have at most {p95} lines; it should be {USUAL}')
    return (
        wrong,
        f'{len(lengths)} functions: median {lengths[len(lengths) // 2]}, p95 {p95}, longest {lengths[-1]} lines',
    )


def other_sizes():
    """Sentences about tests and scripts that are too large."""
    tests = glob.glob(os.path.join(common.ROOT, 'crates', '*', '**', 'tests', '**', '*.rs'), recursive=True)
    tests += glob.glob(os.path.join(common.ROOT, 'crates', '*', '**', 'tests.rs'), recursive=True)
    scripts = [p for part in ('scripts', 'tests') for p in python_in(part)]
    for path in sorted([*tests, *scripts]):
        shown, text = os.path.relpath(path, common.ROOT), read(path)
        lines = len(text.splitlines())
        if lines > FILE:
            yield f'{shown}: {lines} lines, at most {FILE}'
        if path in scripts:
            for name, n in definitions(text):
                if n > LONGEST:
                    yield f'{shown}: def {name} has {n} lines, at most {LONGEST}'


def python_in(folder):
    return glob.glob(os.path.join(common.ROOT, folder, '**', '*.py'), recursive=True)


def definitions(text):
    """Name and lines of each function of a script."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.end_lineno - node.lineno + 1


def self_test():
    """The check finds what it is for."""
    assert list(leaves('a::{b, c::{self, d as e}}')) == [(('a', 'b'), 'b'), (('a', 'c'), 'c'), (('a', 'c', 'd'), 'e')]
    made = {
        (): Module((), 'mod one; mod two; mod three; pub use two::Two; #[cfg(test)] mod tests { use crate::x; }'),
        ('one',): Module(
            ('one',), 'use crate::Two; // use crate::three::Three;\nfn f() { let s = "crate::three::Three"; }'
        ),
        ('two',): Module(('two',), 'use super::three::{Three, other}; pub struct Two;'),
        ('three',): Module(('three',), 'pub struct Three; fn other() { crate::one::f(); }'),
        ('two', 'inner'): Module(('two', 'inner'), 'use super::Two;'),
    }
    graph = uses(made)[()]
    assert sorted((a[0], b[0]) for a in graph for b in graph[a]) == [('one', 'two'), ('three', 'one'), ('two', 'three')]
    assert len(circle(graph)) == 3
    assert list(functions(plain('fn a(x: [u8; 2]) {\n  "}"; // }\n}\nfn b();\n'))) == [('a', 3)]
    kept = {
        ('one',): Module(
            ('one',), 'pub(crate) struct One {\n pub(crate) a: u8,\n b: u8,\n}\nfn f(o: &mut One) { o.a = 1; }'
        ),
        ('two',): Module(('two',), 'fn g(o: &mut One) { o.a += 1; if o.a == 2 {} o.c = 1; h(&mut o.a.d()); }'),
        ('three',): Module(('three',), 'pub struct Answer {\n pub c: u8,\n}'),
    }
    assert list(foreign_writes_in(kept, [])) == ['two writes .a of one::One']
    assert list(foreign_writes_in(kept, ['pub struct Far {\n pub a: u8,\n}'])) == []
    assert list(definitions('def a():\n    def b():\n        return 1\n    return b\n')) == [('a', 4), ('b', 2)]
    assert written()['base'] == set() and 'base' in written()['tcpwhy']
    print('ok')
    return 0


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    wrong = list(edges())
    for crate in sorted(declared()):
        wrong += circles(crate)
    wrong += foreign_writes('analysis', ('base', 'model'))
    large, sum_up = sizes()
    wrong += [*large, *other_sizes()]
    print('\n'.join([*wrong, sum_up]))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
