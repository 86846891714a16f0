#!/usr/bin/env python3
"""The notebook of the Python package, examples/notebook/capture_to_plot.ipynb: from a capture to a plot.

    scripts/notebook.py check      its form, and that its code parses and names only what the package has; needs nothing else
    scripts/notebook.py run        runs it in a kernel of its own (nbclient): its texts must be those that are kept
    scripts/notebook.py write      runs it and keeps its outputs

`run` and `write` need the package and the tools of scripts/python.py (make test-python).
"""

import argparse
import ast
import json
import os
import sys

import common

PATH = os.path.join(common.ROOT, 'examples', 'notebook', 'capture_to_plot.ipynb')
STUB = os.path.join(common.ROOT, 'python', 'tcpwhy', '_tcpwhy.pyi')


def read():
    with open(PATH, encoding='utf8') as f:
        return json.load(f)


def code(notebook):
    return [''.join(cell['source']) for cell in notebook['cells'] if cell['cell_type'] == 'code']


def check():
    """Sentences about what is wrong without running it."""
    notebook = read()
    if (notebook['nbformat'], notebook['metadata']['kernelspec']['name']) != (4, 'python3'):
        yield 'not of nbformat 4, or of another kernel'
    with open(STUB, encoding='utf8') as f:
        there = {node.name for node in ast.parse(f.read()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for n, source in enumerate(code(notebook), 1):
        for node in ast.walk(ast.parse(source)):
            named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == 'tcpwhy'
            if named and node.attr not in there:
                yield f'cell {n}: tcpwhy.{node.attr} is not there'
    outputs = [o for cell in notebook['cells'] for o in cell.get('outputs', [])]
    if not any('image/png' in o.get('data', {}) for o in outputs):
        yield 'no plot is kept in it'
    if any(o['output_type'] == 'error' for o in outputs):
        yield 'an error is kept in it'


def told(notebook):
    """The outputs that are text, by cell."""
    out = []
    for cell in notebook['cells']:
        texts = []
        for output in cell.get('outputs', []):
            text = output.get('text') or output.get('data', {}).get('text/plain', '')
            texts.append(''.join(text))
        out.append(texts)
    return out


def executed():
    import nbclient
    import nbformat

    notebook = nbformat.read(PATH, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={'metadata': {'path': os.path.dirname(PATH)}}).execute()
    for cell in notebook.cells:
        # moments of this run, and what each run numbers anew
        cell.metadata.pop('execution', None)
    return notebook


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('check', 'run', 'write'))
    what = parser.parse_args().what
    if what == 'write':
        import nbformat

        notebook = executed()
        notebook.metadata.pop('language_info', None)
        nbformat.write(notebook, PATH)
    wrong = list(check())
    if what == 'run':
        kept, now = told(read()), told(executed())
        wrong += [f'cell {n}: {b} where {a} is kept' for n, (a, b) in enumerate(zip(kept, now, strict=True)) if a != b]
    print('\n'.join(wrong), end='\n' if wrong else '')
    print(f'{common.shown(PATH)}: {len(code(read()))} cells of code, {len(wrong)} wrong')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
