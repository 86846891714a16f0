#!/usr/bin/env python3
"""The notices that go with a binary: every crate that is compiled into tcpwhy or its wheel, and uPlot in its pages, each with
its licence, every text once. `third_party.py write` makes THIRD-PARTY.txt, `check` says whether it is fresh, from
`cargo metadata` and the licence files in the sources of the crates.

Where a crate offers a choice, MIT is taken, or else what stands first in CHOICE.
"""

import argparse
import json
import os
import re
import subprocess
import sys

import common

FILE = os.path.join(common.ROOT, 'THIRD-PARTY.txt')
PAGE = os.path.join(common.ROOT, 'crates', 'report', 'assets', 'report.html')
PLATFORMS = ('x86_64-unknown-linux-gnu', 'aarch64-unknown-linux-gnu')
CHOICE = (
    'MIT',
    'Zlib',
    'BSD-3-Clause',
    'BSD-2-Clause',
    'ISC',
    'Unlicense',
    'Apache-2.0',
    'Unicode-3.0',
    '0BSD',
    'CC0-1.0',
    'BSL-1.0',
)
LICENCE_FILE = re.compile(r'(?i)^(un)?licen[cs]e|^copying')
NOTICE_FILE = re.compile(r'(?i)^notice')
# words by which the text of a licence is known
KNOWN_BY = {
    'MIT': 'permission is hereby granted, free of charge, to any person obtaining a copy',
    'Zlib': "this software is provided 'as-is'",
    'BSD-3-Clause': 'redistribution and use in source and binary forms',
    'BSD-2-Clause': 'redistribution and use in source and binary forms',
    'ISC': 'permission to use, copy, modify, and/or distribute',
    'Unlicense': 'this is free and unencumbered software',
    'Apache-2.0': 'apache license',
    'Unicode-3.0': 'unicode license v3',
    'CC0-1.0': 'cc0 1.0 universal',
}
# C sources within a crate have a licence of their own: folder, licence
WITHIN = {'zstd-sys': [('zstd', 'BSD-3-Clause')]}
HEAD = """\
Software of others in the binaries of tcpwhy and of its Python package

tcpwhy itself is under MIT or Apache-2.0. Its binaries contain the following, each with its licence; the texts stand below,
each once. Made by scripts/third_party.py.
"""


def metadata(platform, folder=common.ROOT):
    done = subprocess.run(
        ['cargo', 'metadata', '--format-version', '1', '--locked', '--filter-platform', platform],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def of_wheel():
    """The same of the Python package."""
    return crates('tcpwhy-python', os.path.join(common.ROOT, 'python'))


def crates(root='tcpwhy', workspace=common.ROOT):
    """(name, version) to the package, of everything that is compiled into the program."""
    found = {}
    for platform in PLATFORMS:
        data = metadata(platform, workspace)
        packages = {p['id']: p for p in data['packages']}
        nodes = {n['id']: n for n in data['resolve']['nodes']}
        todo, seen = [i for i, p in packages.items() if p['name'] == root], set()
        while todo:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            todo += [d['pkg'] for d in nodes[key]['deps'] if any(k['kind'] is None for k in d['dep_kinds'])]
        for key in seen:
            package = packages[key]
            if package['source']:
                found[package['name'], package['version']] = package
    return dict(sorted(found.items()))


def terms(expression):
    """Licences of an expression, one for each part that AND joins."""
    chosen = []
    for part in re.split(r'\)?\s+AND\s+\(?', expression.replace('/', ' OR ')):
        offered = [o.strip('() ').split(' WITH ')[0] for o in part.split(' OR ')]
        known = [c for c in CHOICE if c in offered]
        if not known:
            sys.exit(f'{expression}: no licence that scripts/third_party.py knows')
        chosen.append(known[0])
    return chosen


def plain(text):
    """To tell one text from another, whatever its line breaks."""
    return ' '.join(text.split())


def texts(folder, licence):
    """The texts of a licence among the files of a folder."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.isfile(path) or not (LICENCE_FILE.match(name) or NOTICE_FILE.match(name)):
            continue
        with open(path, encoding='utf8', errors='replace') as f:
            text = f.read().replace('\r\n', '\n').strip('\n')
        if NOTICE_FILE.match(name) or KNOWN_BY.get(licence, licence).lower() in plain(text).lower():
            found.append('\n'.join(line.rstrip() for line in text.split('\n')))
    return found


def uplot():
    """The notice that stands at the top of every page."""
    with open(PAGE, encoding='utf8') as f:
        found = re.search(r'This page contains uPlot \((\S+)\):\n\n(.*?)\n-->', f.read(), re.S)
    if not found:
        sys.exit(f'{common.shown(PAGE)} has no notice of uPlot')
    return found[1], found[2]


def build():
    names, by_text, missing = [], {}, []

    def add(who, licence, found):
        for text in found:
            by_text.setdefault((licence, plain(text)), (text, []))[1].append(who)

    for (name, version), package in sorted({**crates(), **of_wheel()}.items()):
        chosen = terms(package['license'] or '')
        names.append(f'{name} {version}: {" and ".join(chosen)}  {package["repository"] or ""}'.rstrip())
        folder = os.path.dirname(package['manifest_path'])
        for licence, where in [(c, folder) for c in chosen] + [
            (c, os.path.join(folder, sub)) for sub, c in WITHIN.get(name, [])
        ]:
            found = texts(where, licence)
            add(name if where == folder else f'{os.path.basename(where)} (in {name})', licence, found)
            if not found:
                missing.append((name, licence, package['authors']))
    address, text = uplot()
    names.append(f'uPlot: MIT  {address}')
    add('uPlot', 'MIT', [text])
    for name, licence, authors in missing:
        # their packages carry no text: that of another with the same licence stands for it
        names.append(
            f'{name}: its package has no text of {licence}; by {", ".join(authors) or "the authors of " + name}'
        )
        if not any(key[0] == licence for key in by_text):
            sys.exit(f'{name}: no text of {licence} anywhere')
    parts = [HEAD, '\n'.join(names)]
    for (licence, _), (text, who) in sorted(by_text.items(), key=lambda item: (item[0][0], item[1][1])):
        parts.append(f'{"-" * 80}\n{licence}: {", ".join(sorted(set(who)))}\n\n{text}')
    return '\n'.join(part + '\n' for part in parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['write', 'check'])
    args = parser.parse_args()
    now = build()
    if args.what == 'write':
        with open(FILE, 'w', encoding='utf8') as f:
            f.write(now)
        return 0
    try:
        with open(FILE, encoding='utf8') as f:
            kept = f.read()
    except FileNotFoundError:
        kept = ''
    if kept != now:
        print(f'{common.shown(FILE)} is old: scripts/third_party.py write')
        return 1
    print(f'{now.count(chr(10) + "-" * 80)} licence texts of what a binary contains')
    return 0


if __name__ == '__main__':
    sys.exit(main())
