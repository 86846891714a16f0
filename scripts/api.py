#!/usr/bin/env python3
"""The public interface of the crate tcpwhy-library, as a list of its items: crates/library/api.txt.

    scripts/api.py check        it is what the code gives, and nothing of it went or changed within a version
    scripts/api.py write        writes it anew; refuses to where a version has to be raised first

The items are those that rustdoc finds: what the crate has and re-exports, and what can be reached from there, by its fields,
parameters and results. Versions are those of Cargo.toml, in the sense of semver as cargo reads it: before 1.0 the second
number tells that something may break.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import common

LIST = os.path.join(common.ROOT, 'crates', 'library', 'api.txt')
LIBRARY = 'tcpwhy_library'
CRATES = ('library', 'analysis', 'base', 'capture', 'model')
# of rustdoc's JSON: what this script reads was not renamed between these
FORMATS = range(54, 64)
# traits whose absence nobody can build on, and what the compiler adds
UNTOLD = ('StructuralPartialEq', 'Freeze', 'UnsafeUnpin', 'Unpin', 'UnwindSafe', 'RefUnwindSafe')


def documents():
    """{crate: what rustdoc says of it}, or the reason why there is none."""
    target = os.path.dirname(os.path.dirname(common.BINARY))
    with tempfile.TemporaryDirectory() as work:
        # cargo must not see the switch, or it would build all over again what looks at it
        rustdoc = os.path.join(work, 'rustdoc')
        with open(rustdoc, 'w', encoding='utf8') as f:
            f.write('#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@"\n')
        os.chmod(rustdoc, 0o755)
        environment = {
            **os.environ,
            'RUSTDOC': rustdoc,
            'RUSTDOCFLAGS': '-Z unstable-options --output-format json',
        }
        packages = [word for crate in CRATES for word in ('-p', f'tcpwhy-{crate}')]
        command = ['cargo', 'doc', '--quiet', '--no-deps', '--locked', '--lib', *packages]
        subprocess.run(command, cwd=common.ROOT, env=environment, check=True)
    out = {}
    for crate in CRATES:
        path = os.path.join(target, 'doc', f'tcpwhy_{crate}.json')
        with open(path, encoding='utf8') as f:
            out[f'tcpwhy_{crate}'] = json.load(f)
        version = out[f'tcpwhy_{crate}']['format_version']
        if version not in FORMATS:
            return f'format {version} of rustdoc is not known here'
    return out


class Crate:
    """What rustdoc says of a crate, by number."""

    def __init__(self, name, document):
        self.name, self.document = name, document
        self.index = document['index']

    def item(self, number):
        return self.index.get(str(number))

    def origin(self, number):
        """(crate, path) of an item, wherever it was written."""
        told = self.document['paths'].get(str(number))
        if not told:
            return None
        crate = told['crate_id']
        name = self.name if crate == 0 else self.document['external_crates'][str(crate)]['name']
        return name, tuple(told['path'])


class Listing:
    """Collects lines, one for each item, from the root of the library on."""

    def __init__(self, told):
        self.crates = {name: Crate(name, document) for name, document in told.items()}
        self.by_path = {}
        for crate in self.crates.values():
            for number in crate.index:
                origin = crate.origin(number)
                if origin and origin[0] == crate.name:
                    self.by_path[origin[1]] = crate, number
        self.lines, self.names, self.todo, self.done = set(), {}, [], set()

    def all(self):
        library = self.crates[LIBRARY]
        self.module(library, library.item(library.document['root']), '')
        while self.todo:
            path = self.todo.pop()
            if path not in self.done:
                self.done.add(path)
                crate, number = self.by_path[path]
                self.one(crate, crate.item(number), self.name(path))
        return sorted(self.lines)

    def module(self, crate, item, prefix):
        """Names first, so that types are called by what users of the library call them."""
        for number in item['inner']['module']['items']:
            inner = crate.item(number)['inner']
            if 'use' in inner:
                origin = crate.origin(inner['use']['id'])
                self.export(origin[1], prefix + inner['use']['name'])
            elif 'module' in inner:
                name = prefix + crate.item(number)['name']
                self.lines.add(f'mod {name}')
                self.module(crate, crate.item(number), f'{name}::')
            else:
                self.export(crate.origin(number)[1], prefix + crate.item(number)['name'])

    def export(self, path, name):
        self.names[path] = name
        self.todo.append(path)

    def name(self, path):
        return self.names.get(path) or '::'.join(path)

    # how things are written

    def path(self, crate, of):
        origin = crate.origin(of['id'])
        if origin and origin[0] in self.crates:
            path = origin[1]
            if path in self.by_path:
                self.todo.append(path)
            name = self.name(path)
        else:
            name = of['path'].rsplit('::', 1)[-1]
        return name + self.arguments(crate, of.get('args'))

    def arguments(self, crate, args):
        if not args:
            return ''
        if 'parenthesized' in args:
            inner = args['parenthesized']
            result = f' -> {self.type(crate, inner["output"])}' if inner['output'] else ''
            return f'({", ".join(self.type(crate, t) for t in inner["inputs"])}){result}'
        inner = args['angle_bracketed']
        words = [self.argument(crate, a) for a in inner['args']]
        for bound in inner['constraints']:
            if 'equality' in bound['binding']:
                words.append(f'{bound["name"]} = {self.term(crate, bound["binding"]["equality"])}')
        return f'<{", ".join(words)}>' if words else ''

    def argument(self, crate, a):
        if a == 'infer':
            return '_'
        if 'lifetime' in a:
            return a['lifetime']
        return self.type(crate, a['type']) if 'type' in a else a['const']['expr']

    def term(self, crate, term):
        return self.type(crate, term['type']) if 'type' in term else term['constant']['expr']

    def bounds(self, crate, bounds):
        words = []
        for bound in bounds:
            if 'trait_bound' in bound:
                maybe = '?' if bound['trait_bound']['modifier'] == 'maybe' else ''
                words.append(maybe + self.path(crate, bound['trait_bound']['trait']))
            elif 'outlives' in bound:
                words.append(bound['outlives'])
        return ' + '.join(words)

    def type(self, crate, t):
        (kind, of) = next(iter(t.items()))
        match kind:
            case 'resolved_path':
                return self.path(crate, of)
            case 'primitive' | 'generic':
                return of
            case 'tuple':
                return f'({", ".join(self.type(crate, one) for one in of)})'
            case 'slice':
                return f'[{self.type(crate, of)}]'
            case 'array':
                return f'[{self.type(crate, of["type"])}; {of["len"]}]'
            case 'borrowed_ref':
                lifetime = f'{of["lifetime"]} ' if of['lifetime'] else ''
                return f'&{lifetime}{"mut " if of["is_mutable"] else ""}{self.type(crate, of["type"])}'
            case 'impl_trait':
                return f'impl {self.bounds(crate, of)}'
            case 'dyn_trait':
                traits = [self.path(crate, one['trait']) for one in of['traits']]
                return f'dyn {" + ".join(traits + ([of["lifetime"]] if of["lifetime"] else []))}'
            case 'function_pointer':
                return f'fn{self.signature(crate, of["sig"])}'
            case 'qualified_path':
                return f'<{self.type(crate, of["self_type"])}>::{of["name"]}'
        raise ValueError(kind)

    def signature(self, crate, sig):
        words = []
        for name, t in sig['inputs']:
            if name == 'self':
                whose = self.type(crate, t)
                words.append(
                    whose.replace('Self', 'self') if whose in ('Self', '&Self', '&mut Self') else f'self: {whose}'
                )
            else:
                words.append(self.type(crate, t))
        result = f' -> {self.type(crate, sig["output"])}' if sig['output'] else ''
        return f'({", ".join(words)}){result}'

    def generics(self, crate, generics):
        words = []
        for param in generics['params']:
            kind = param['kind']
            if 'type' in kind and not kind['type']['is_synthetic']:
                bounds = self.bounds(crate, kind['type']['bounds'])
                words.append(param['name'] + (f': {bounds}' if bounds else ''))
            elif 'lifetime' in kind:
                words.append(param['name'])
        return f'<{", ".join(words)}>' if words else ''

    def function(self, crate, item):
        inner = item['inner']['function']
        const = 'const ' if inner['header']['is_const'] else ''
        return f'{const}fn', self.generics(crate, inner['generics']) + self.signature(crate, inner['sig'])

    # items

    def one(self, crate, item, name):
        inner = item['inner']
        grows = '#[non_exhaustive] ' if 'non_exhaustive' in item['attrs'] else ''
        (kind, of) = next(iter(inner.items()))
        match kind:
            case 'struct':
                self.struct(crate, of, name, grows)
                self.impls(crate, of['impls'], name)
            case 'enum':
                self.lines.add(f'{grows}enum {name}{self.generics(crate, of["generics"])}')
                for number in of['variants']:
                    self.variant(crate, crate.item(number), name)
                self.impls(crate, of['impls'], name)
            case 'function':
                word, rest = self.function(crate, item)
                self.lines.add(f'{word} {name}{rest}')
            case 'constant':
                self.lines.add(f'const {name}: {self.type(crate, of["type"])}')
            case 'static':
                self.lines.add(f'static {name}: {self.type(crate, of["type"])}')
            case 'type_alias':
                self.lines.add(f'type {name} = {self.type(crate, of["type"])}')
            case 'trait':
                self.lines.add(f'trait {name}')
                for number in of['items']:
                    self.member(crate, crate.item(number), name)
            case 'module':
                self.lines.add(f'mod {name}')
                for number in of['items']:
                    inner = crate.item(number)
                    if inner and 'use' not in inner['inner'] and inner['visibility'] == 'public':
                        self.export(crate.origin(number)[1], f'{name}::{inner["name"]}')
            case _:
                raise ValueError(f'{kind} {name}')

    def struct(self, crate, of, name, grows):
        kind, fields, hidden = of['kind'], [], False
        if kind != 'unit':
            (shape, told) = next(iter(kind.items()))
            fields = told['fields'] if shape == 'plain' else told
            hidden = told['has_stripped_fields'] if shape == 'plain' else None in told
        # who can name all fields can build it, and a new field breaks that
        whole = 'struct' if hidden or grows else 'open struct'
        self.lines.add(f'{grows}{whole} {name}{self.generics(crate, of["generics"])}')
        for number in filter(None, fields):
            field = crate.item(number)
            self.lines.add(f'field {name}.{field["name"]}: {self.type(crate, field["inner"]["struct_field"])}')

    def variant(self, crate, item, name):
        kind, shown = item['inner']['variant']['kind'], ''
        if kind != 'plain':
            (shape, told) = next(iter(kind.items()))
            numbers = [n for n in (told['fields'] if shape == 'struct' else told) if n is not None]
            fields = [crate.item(n) for n in numbers]
            words = [self.type(crate, f['inner']['struct_field']) for f in fields]
            if shape == 'struct':
                words = [f'{f["name"]}: {word}' for f, word in zip(fields, words, strict=True)]
            shown = f' {{ {", ".join(words)} }}' if shape == 'struct' else f'({", ".join(words)})'
        self.lines.add(f'variant {name}::{item["name"]}{shown}')

    def impls(self, crate, numbers, name):
        for number in numbers:
            item = crate.item(number)
            of = item['inner']['impl']
            if of['blanket_impl'] or of['is_negative']:
                continue
            if of['trait'] is None:
                for inner in of['items']:
                    self.member(crate, crate.item(inner), name)
                continue
            trait = self.path(crate, of['trait'])
            if trait.split('<')[0] not in UNTOLD:
                self.lines.add(f'impl {trait} for {name}')

    def member(self, crate, item, name):
        if item is None or item['visibility'] not in ('public', 'default'):
            return
        inner = item['inner']
        if 'function' in inner:
            word, rest = self.function(crate, item)
            self.lines.add(f'{word} {name}::{item["name"]}{rest}')
        elif 'assoc_const' in inner:
            self.lines.add(f'const {name}::{item["name"]}: {self.type(crate, inner["assoc_const"]["type"])}')


# versions


def breaking(before, after):
    """Sentences about what users of the first list can no longer build on in the second."""
    gone, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    out = [f'gone or changed: {line}' for line in gone if not relaxed(line, after)]
    for line in new:
        (word, _, rest) = line.partition(' ')
        owner = re.split(r'\.|::(?=[^:]*$)', re.split(r'[ ({:](?!:)', rest)[0])[0]
        if word == 'variant' and f'enum {rest.split("::" + variant_of(rest))[0]}' in before:
            out.append(f'new in an enum that is matched as a whole: {line}')
        if word == 'field' and f'open struct {owner}' in before:
            out.append(f'new in a struct that others build: {line}')
    return out


def variant_of(rest):
    return re.split(r'[ (]', rest)[0].rsplit('::', 1)[-1]


def relaxed(line, after):
    """What it says is said with less restriction."""
    return line.startswith('fn ') and f'const {line}' in after


def series(version):
    """What of a version must be raised where something breaks."""
    major, minor, patch = (int(n) for n in version.split('.')[:3])
    return (major,) if major else (0, minor) if minor else (0, 0, patch)


def verdict(before, after):
    """Sentences about changes between two lists, each (version, lines), that their versions forbid."""
    if series(after[0]) > series(before[0]):
        return []
    return breaking(before[1], after[1])


def read():
    with open(LIST, encoding='utf8') as f:
        head, *lines = f.read().splitlines()
    return head.split()[2], [line for line in lines if line]


def version():
    with open(os.path.join(common.ROOT, 'Cargo.toml'), encoding='utf8') as f:
        return re.search(r'^version = "(.+?)"', f.read(), re.MULTILINE)[1]


def self_test():
    """What must be found in made-up lists is found."""
    lines = [
        'enum A',
        'variant A::B',
        '#[non_exhaustive] enum m::C',
        'variant m::C::D(u8)',
        'open struct S',
        'field S.x: u8',
    ]
    lines += ['struct T', 'field T.y: u8', 'fn T::new() -> T', 'const N: u8']
    for more, less, wrong in (
        ([], [], 0),
        (['fn T::other(&self)'], [], 0),
        ([], ['fn T::new() -> T'], 1),
        (['fn T::new(u8) -> T'], ['fn T::new() -> T'], 1),
        (['const fn T::new() -> T'], ['fn T::new() -> T'], 0),
        (['variant A::E { x: m::C }'], [], 1),
        (['variant m::C::E'], [], 0),
        (['field S.z: m::C'], [], 1),
        (['field T.z: m::C'], [], 0),
        (['const N: u16'], ['const N: u8'], 1),
    ):
        after = [line for line in lines if line not in less] + more
        found = verdict(('0.1.0', lines), ('0.1.9', after))
        assert len(found) == wrong, (more, less, found)
        assert not verdict(('0.1.0', lines), ('0.2.0', after))
        assert len(verdict(('1.1.0', lines), ('1.2.0', after))) == wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('check', 'write'))
    what = parser.parse_args().what
    self_test()
    if not shutil.which('cargo'):
        print('SKIP: cargo is not here')
        return 75
    told = documents()
    if isinstance(told, str):
        print(f'SKIP: {told}')
        return 75
    now = version(), Listing(told).all()
    nameless = [line for line in now[1] if re.search(r'\btcpwhy_\w+::', line)]
    if nameless:
        print('\n'.join(nameless))
        print(
            'these can be reached but not be named by users of tcpwhy-library: re-export them (crates/library/src/lib.rs)'
        )
        return 1
    before = read() if os.path.exists(LIST) else now
    wrong = verdict(before, now)
    if wrong:
        print('\n'.join(wrong))
        print(f'this breaks programs that use version {before[0]}: keep it, or raise the version in Cargo.toml')
        return 1
    if what == 'write':
        with open(LIST, 'w', encoding='utf8') as f:
            f.write('\n'.join((f'# tcpwhy-library {now[0]} (scripts/api.py write)', *now[1], '')))
    elif before != now:
        for mark, some in (('-', set(before[1]) - set(now[1])), ('+', set(now[1]) - set(before[1]))):
            print('\n'.join(f'{mark} {line}' for line in sorted(some)))
        print('crates/library/api.txt is not what the code gives, which is compatible with it: scripts/api.py write')
        return 1
    print(f'tcpwhy-library {now[0]}: {len(now[1])} public items, all by names of its own')
    return 0


if __name__ == '__main__':
    sys.exit(main())
