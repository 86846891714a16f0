"""TypeScript types of the page from the JSON Schema of the contract: docs/schema/explain-1.json to web/src/contract/."""

import json
import os
import re
import textwrap

import common

SCHEMA = os.path.join(common.ROOT, 'docs', 'schema', 'explain-1.json')
TYPES = os.path.join(common.ROOT, 'web', 'src', 'contract')
# each file has a type and what that is made of, less what the files before it have; the last one has the rest
FILES = (('findings', 'Finding'), ('connections', 'Connection'), ('report', 'Report'))
PLAIN = {'integer': 'number', 'number': 'number', 'string': 'string', 'boolean': 'boolean', 'null': 'null'}
HEAD = '// Made by `make web` from docs/schema/explain-1.json (scripts/page_types.py).\n'


def type_of(schema):
    """The type of a value: what the page needs of a schema, and an error for what it has not met."""
    if '$ref' in schema:
        return schema['$ref'].rpartition('/')[2]
    if 'anyOf' in schema:
        return ' | '.join(type_of(one) for one in schema['anyOf'])
    if 'enum' in schema:
        return ' | '.join(f"'{value}'" for value in schema['enum'])
    kind = schema['type']
    if isinstance(kind, list):
        return ' | '.join(type_of({**schema, 'type': one}) for one in kind)
    if kind == 'array' and 'prefixItems' in schema:
        return f'[{", ".join(type_of(one) for one in schema["prefixItems"])}]'
    if kind == 'array':
        inner = type_of(schema['items'])
        return f'({inner})[]' if ' | ' in inner else f'{inner}[]'
    if kind == 'object':
        return f'Record<string, {type_of(schema["additionalProperties"])}>'
    return PLAIN[kind]


def comment(schema, indent=''):
    """Its description, in lines of 120 columns."""
    lines = textwrap.wrap(' '.join(schema.get('description', '').split()), 110)
    if len(lines) < 2:
        return ''.join(f'{indent}/** {line} */\n' for line in lines)
    return f'{indent}/**\n' + ''.join(f'{indent} * {line}\n' for line in lines) + f'{indent} */\n'


def union(schema, lists):
    """A list of words; those that are a list of their own (`lists`: name, words) by its name."""
    words, parts = schema['enum'], []
    for name, others in lists:
        if set(others) < set(words):
            parts.append(name)
            words = [word for word in words if word not in others]
    parts += [f"'{word}'" for word in words]
    line = ' | '.join(parts)
    return f' {line}' if len(line) <= 90 else ''.join(f'\n  | {part}' for part in parts)


def declaration(name, schema, lists=()):
    """An interface, or a name for a type."""
    if 'properties' not in schema:
        kind = union(schema, lists) if 'enum' in schema else f' {type_of(schema)}'
        return f'{comment(schema)}export type {name} ={kind};\n'
    needed = schema.get('required', [])
    # in the order in which they are written, not in that of the alphabet
    order = [*needed, *(key for key in schema['properties'] if key not in needed)]
    fields = ''.join(
        comment(schema['properties'][key], '  ')
        + f'  {key}{"" if key in needed else "?"}: {type_of(schema["properties"][key])};\n'
        for key in order
    )
    return f'{comment(schema)}export interface {name} {{\n{fields}}}\n'


def named(declared, known):
    """The types that a declaration is made of."""
    code = re.sub(r'/\*\*.*?\*/', '', declared, flags=re.S)
    return {word for word in re.findall(r'\b[A-Z]\w*', code) if word in known}


def made_of(name, types):
    """A type, and all that it is made of."""
    seen, open_ = set(), [name]
    while open_:
        name = open_.pop()
        if name not in seen:
            seen.add(name)
            open_ += named(types[name], types)
    return seen


def texts():
    """{path: the whole file}."""
    with open(SCHEMA, encoding='utf8') as f:
        schema = json.load(f)
    lists = [(name, one['enum']) for name, one in schema['$defs'].items() if len(one.get('enum', [])) > 8]
    types = {'Report': declaration('Report', schema)}
    types.update((name, declaration(name, one, lists)) for name, one in schema['$defs'].items())
    where, out = {}, {}
    for file, root in FILES:
        mine = [name for name in types if name in made_of(root, types) and name not in where]
        used = set().union(*(named(types[name], types) for name in mine))
        parts = [HEAD]
        for other, _ in FILES:
            names = sorted(name for name in used if where.get(name) == other)
            if names:
                parts.append(f"import type {{ {', '.join(names)} }} from './{other}';\n")
        where.update((name, file) for name in mine)
        out[os.path.join(TYPES, f'{file}.ts')] = '\n'.join([*parts, *(types[name] for name in mine)])
    return out


def write():
    os.makedirs(TYPES, exist_ok=True)
    for path, made in texts().items():
        with open(path, 'w', encoding='utf8') as f:
            f.write(made)


def is_fresh():
    for path, made in texts().items():
        if not os.path.exists(path):
            return False
        with open(path, encoding='utf8') as f:
            if f.read() != made:
                return False
    return True
