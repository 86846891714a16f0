#!/usr/bin/env python3
"""What a release is made of: docs/release.md.

    scripts/package.py deb [--bin PATH]    target/package/tcpwhy_VERSION_ARCH.deb: program, pages, completions, unit
    scripts/package.py sbom                target/package/tcpwhy_VERSION.cdx.json: CycloneDX 1.6, of the program and of the wheel
    scripts/package.py static              the program without shared libraries, in target/static (by scripts/profiled.py)
    scripts/package.py check [--bin PATH]  makes a .deb and a list of parts, installs and removes the one, validates the other

`check` ends with code 75 where dpkg is missing.
"""

import argparse
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import common
import third_party

TARGET = os.path.dirname(os.path.dirname(common.BINARY))
OUT = os.path.join(TARGET, 'package')
STATIC = os.path.join(TARGET, 'static')
COMPLETIONS = (
    ('bash', 'usr/share/bash-completion/completions/tcpwhy'),
    ('zsh', 'usr/share/zsh/vendor-completions/_tcpwhy'),
    ('fish', 'usr/share/fish/vendor_completions.d/tcpwhy.fish'),
)
CONTROL = """\
Package: tcpwhy
Version: {version}
Architecture: {architecture}
Maintainer: The tcpwhy project <https://github.com/tcpwhy/tcpwhy>
Installed-Size: {size}
{depends}Section: net
Priority: optional
Homepage: https://github.com/tcpwhy/tcpwhy
Description: explains from a packet capture why a TCP transfer or request is slow
 Where the time of TCP connections and requests goes, with the packets that
 prove it, what would fix it and by how much: from captures, of the running
 host, or of a command that is run for it.
"""
# Of a binary package the sources say no more than this.
RELATED = 'Files: *\nCopyright: the tcpwhy project\nLicense: MIT or Apache-2.0'


def version():
    with open(os.path.join(common.ROOT, 'Cargo.toml'), encoding='utf8') as f:
        return re.search(r'^version = "(.+)"', f.read(), re.M)[1]


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, cwd=common.ROOT, **options).stdout


def put(tree, path, data, mode=0o644):
    path = os.path.join(tree, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data)
    os.chmod(path, mode)


def packed(data):
    """The same bytes each time."""
    return gzip.compress(data, 9, mtime=0)


def libraries(binary):
    """The line about shared libraries: glibc, in the version of the youngest symbol; nothing if there are none."""
    with open(binary, 'rb') as f:
        data = f.read()
    youngest = max((int(n) for n in re.findall(rb'GLIBC_2\.(\d+)', data)), default=None)
    if youngest is None or not re.search(rb'\blibc\.so\.6\0', data):
        return ''
    others = ', libgcc-s1' if b'libgcc_s.so.1\0' in data else ''
    return f'Depends: libc6 (>= 2.{youngest}){others}\n'


def tree(binary, folder):
    """The files of the package."""
    put(folder, 'usr/bin/tcpwhy', read(binary), 0o755)
    with tempfile.TemporaryDirectory() as pages:
        output(binary, 'man', '--dir', pages)
        for path in sorted(glob.glob(os.path.join(pages, '*.1'))):
            put(folder, f'usr/share/man/man1/{os.path.basename(path)}.gz', packed(read(path)))
    for shell, path in COMPLETIONS:
        put(folder, path, output(binary, 'completions', shell))
    unit = os.path.join(common.ROOT, 'packaging', 'tcpwhy-metrics.service')
    put(folder, 'usr/lib/systemd/system/tcpwhy-metrics.service', read(unit))
    for name in ('README.md', 'CHANGELOG.md', 'THIRD-PARTY.txt'):
        put(folder, f'usr/share/doc/tcpwhy/{name}.gz', packed(read(os.path.join(common.ROOT, name))))
    put(folder, 'usr/share/doc/tcpwhy/grafana.json', read(os.path.join(common.ROOT, 'docs', 'grafana.json')))
    texts = [read(os.path.join(common.ROOT, f'LICENSE-{name}')).decode() for name in ('MIT', 'APACHE')]
    put(folder, 'usr/share/doc/tcpwhy/copyright', '\n\n'.join([RELATED, *texts]).encode())


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def deb(binary):
    """Builds it; its path."""
    architecture = output('dpkg', '--print-architecture').decode().strip()
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, f'tcpwhy_{version()}_{architecture}.deb')
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        tree(binary, folder)
        files = sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names)
        size = sum(os.path.getsize(f) for f in files) // 1024
        sums = ''.join(f'{hashlib.md5(read(f)).hexdigest()}  {os.path.relpath(f, folder)}\n' for f in files)
        facts = {'version': version(), 'architecture': architecture, 'size': size, 'depends': libraries(binary)}
        put(folder, 'DEBIAN/control', CONTROL.format(**facts).encode())
        put(folder, 'DEBIAN/md5sums', sums.encode())
        output('dpkg-deb', '--root-owner-group', '-Zxz', '--build', folder, path)
    return path


def install_and_remove(path):
    """Sentences about what is wrong with the package once it is installed into a root of its own, and after it was removed."""
    with tempfile.TemporaryDirectory() as root:
        for name in ('updates', 'info', 'triggers'):
            os.makedirs(os.path.join(root, 'var/lib/dpkg', name))
        for name in ('status', 'available'):
            put(root, f'var/lib/dpkg/{name}', b'')
        dpkg = ['dpkg', f'--root={root}', '--force-not-root', '--force-depends', '--log=/dev/null']
        subprocess.run([*dpkg, '--install', path], check=True, capture_output=True)
        listed = output(*dpkg, '--listfiles', 'tcpwhy').decode().split()
        for wanted in ('/usr/share/man/man1/tcpwhy-explain.1.gz', '/usr/lib/systemd/system/tcpwhy-metrics.service'):
            if wanted not in listed:
                yield f'{wanted} is not in the package'
        binary = os.path.join(root, 'usr/bin/tcpwhy')
        said = subprocess.run([binary, '--version'], capture_output=True, text=True, check=False).stdout
        if version() not in said:
            yield f'the installed program says: {said}'
        if subprocess.run(['bash', '-n', os.path.join(root, COMPLETIONS[0][1])], check=False).returncode:
            yield 'the completions are no bash'
        yield from bad_unit(os.path.join(root, 'usr/lib/systemd/system/tcpwhy-metrics.service'), binary)
        for name, expected in (line.split('  ')[::-1] for line in sums(root)):
            if hashlib.md5(read(os.path.join(root, name))).hexdigest() != expected:
                yield f'{name} is damaged'
        subprocess.run([*dpkg, '--purge', 'tcpwhy'], check=True, capture_output=True)
        left = [os.path.join(d, n) for d, _, names in os.walk(root) for n in names if not d.startswith(f'{root}/var')]
        if left:
            yield f'left behind: {left}'


def sums(root):
    return read(os.path.join(root, 'var/lib/dpkg/info/tcpwhy.md5sums')).decode().splitlines()


def bad_unit(path, binary):
    """What systemd says against the unit, with the program where it is now."""
    if not common.have('systemd-analyze'):
        return
    with tempfile.TemporaryDirectory() as folder:
        text = read(path).replace(b'/usr/bin/tcpwhy', binary.encode())
        put(folder, 'tcpwhy-metrics.service', text)
        command = ['systemd-analyze', '--man=no', 'verify', os.path.join(folder, 'tcpwhy-metrics.service')]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = [line for line in done.stderr.splitlines() if 'tcpwhy-metrics' in line]
        if said:
            yield f'systemd: {said[:3]}'


def sbom():
    """The list of parts; its path."""
    from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.license import LicenseExpression
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    def part(name, its_version, licence, kind=ComponentType.LIBRARY, address=None):
        package = PackageURL('cargo', name=name, version=its_version)
        references = [ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(address))] if address else []
        licence = (licence or 'NOASSERTION').replace('/', ' OR ')
        return Component(
            type=kind,
            name=name,
            version=its_version,
            purl=package,
            bom_ref=str(package),
            licenses=[LicenseExpression(licence)],
            external_references=references,
        )

    bom = Bom()
    root = bom.metadata.component = part('tcpwhy', version(), 'MIT OR Apache-2.0', ComponentType.APPLICATION)
    parts = [
        part(name, its, package['license'], address=package['repository'])
        for (name, its), package in {**third_party.crates(), **third_party.of_wheel()}.items()
    ]
    for one in parts:
        bom.components.add(one)
    bom.register_dependency(root, parts)
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, f'tcpwhy_{version()}.cdx.json')
    with open(path, 'w', encoding='utf8') as f:
        f.write(JsonV1Dot6(bom).output_as_string(indent=2))
    return path


def bad_sbom(path):
    """Sentences about a list of parts that is not valid, or does not have what the lock file has."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = read(path).decode()
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        yield f'not CycloneDX: {str(wrong)[:300]}'
    names = {c['name'] for c in json.loads(text)['components']}
    missing = {'zstd-sys', 'parquet', 'pyo3', 'aya'} - names
    if missing or len(names) < 100:
        yield f'{len(names)} parts, without {missing}'


def static():
    """Builds it; its path."""
    path = os.path.join(STATIC, 'tcpwhy')
    command = [sys.executable, os.path.join(common.ROOT, 'scripts', 'profiled.py'), '--static', path]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        sys.exit('not built')
    if libraries(path):
        sys.exit(f'{common.shown(path)} needs shared libraries')
    return path


def check(binary):
    if not shutil.which('dpkg-deb'):
        print('SKIP: dpkg is not installed')
        return 75
    try:
        import cyclonedx.validation.json  # noqa: F401
    except ImportError as error:
        print(f'SKIP: {error}; scripts/setup.sh test installs it from scripts/tools.txt')
        return 75
    package, parts = deb(binary), sbom()
    wrong = [*install_and_remove(package), *bad_sbom(parts)]
    print('\n'.join(wrong))
    print(f'{os.path.basename(package)}, {os.path.getsize(package)} bytes, installed and removed; {len(wrong)} wrong')
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('deb', 'sbom', 'static', 'check'))
    parser.add_argument('--bin', default=common.BINARY)
    args = parser.parse_args()
    binary = os.path.abspath(args.bin)
    if args.what == 'check':
        return check(binary)
    print(common.shown({'deb': lambda: deb(binary), 'sbom': sbom, 'static': static}[args.what]()))
    return 0


if __name__ == '__main__':
    sys.exit(main())
