#!/usr/bin/env python3
"""Plants a cause in the table (--cfg planted_cause) and expects a test to miss it in every place that lists causes.

Only tcpwhy-base is built for it, into target/planted: some seconds.
"""

import os
import re
import subprocess
import sys

import common

# places that a new cause must be in, beside its row: the tests that notice if it is not
MISSED = {
    'every_cause_has_a_page_that_says_what_decides',
    'the_readme_lists_what_a_capture_can_show',
    'the_index_of_the_pages_is_the_table',
    'schemas_and_the_list_for_programs_name_every_cause',
    'every_cause_that_a_capture_can_show_has_a_rule_test_or_a_reason',
}


def main():
    target = os.path.join(os.path.dirname(os.path.dirname(common.BINARY)), 'planted')
    environment = {k: v for k, v in os.environ.items() if k != 'UPDATE'}
    environment.update(RUSTFLAGS='--cfg planted_cause', CARGO_TARGET_DIR=target, CARGO_TERM_COLOR='never')
    done = subprocess.run(
        ['cargo', 'test', '--locked', '-p', 'tcpwhy-base', '--no-fail-fast', '--', '--format', 'pretty'],
        cwd=common.ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    failed = set(re.findall(r'^test (\w+) \.\.\. FAILED$', done.stdout, re.M))
    if failed == MISSED and done.returncode:
        print(f'planted cause: missed by all {len(MISSED)} tests that should')
        return 0
    print(done.stdout[-4000:])
    for name in sorted(MISSED - failed):
        print(f'planted cause: {name} did not notice that it is missing')
    for name in sorted(failed - MISSED):
        print(f'planted cause: {name} failed and should not')
    return 1


if __name__ == '__main__':
    sys.exit(main())
