#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what doc/ros.md has its readers paste: the launch files are well-formed and give a process
weir, the C and C++ compiles, options, functions and files that it names exist, links lead somewhere.

usage: ros.py SRCDIR LIBRARY    in the build folder; LIBRARY is libweir_malloc.so, or empty
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import types
import xml.etree.ElementTree

source = pathlib.Path(sys.argv[1])
library = sys.argv[2]
failures = []


def complain(text):
    failures.append(text)
    print('FAIL', text)


def blocks(text, language):
    """The fenced pieces of code in that language."""
    return re.findall(r'^```' + language + r'\n(.*?)^```$', text, re.M | re.S)


# ---- launch files ----

def check_environment(environment, where, before=''):
    """What a launch file sets makes weir active, and keeps what was preloaded before."""
    preload = environment.get('LD_PRELOAD')
    if preload is None:
        complain(f'{where} sets no LD_PRELOAD')
        return
    name, _, rest = preload.partition(':')
    if name != 'libweir_malloc.so' or rest != before:
        complain(f'{where}: LD_PRELOAD={preload}')
    if not library:
        return
    values = {**environment, 'LD_PRELOAD': library + ':', 'WEIR_VERBOSE': '1'}
    said = subprocess.run(['/bin/true'], env=values, stderr=subprocess.PIPE, text=True).stderr
    lines = said.splitlines()
    if len(lines) != 1 or not re.match(r'weir [0-9.]+ active: WEIR_RETAIN=', lines[0]):
        complain(f'{where}: a process started so says {said}')


def check_xml(text):
    root = xml.etree.ElementTree.fromstring(text)
    processes = root.findall('.//node') + root.findall('.//node_container')
    if root.tag != 'launch' or not processes:
        complain('a launch file in XML starts nothing')
    for process in processes:
        if not process.get('pkg') or not process.get('exec'):
            complain(f'<{process.tag}> without pkg or exec')
        environment = {variable.get('name'): variable.get('value')
                       for variable in process.findall('env')}
        check_environment(environment, f'<{process.tag}>', "$(env LD_PRELOAD '')")


class Recorder:
    """Stands for an action of launch, and keeps what it was made with."""

    made = []

    def __init__(self, *arguments, **options):
        self.options = options
        Recorder.made.append(self)


def check_python(text):
    names = {'launch': ['LaunchDescription'],
             'launch_ros': [],
             'launch_ros.actions': ['ComposableNodeContainer', 'Node'],
             'launch_ros.descriptions': ['ComposableNode']}
    for module, members in names.items():
        sys.modules[module] = types.ModuleType(module)
        for member in members:
            setattr(sys.modules[module], member, type(member, (Recorder,), {}))
    Recorder.made = []
    os.environ['LD_PRELOAD'] = 'libother.so'
    scope = {}
    exec(compile(text, 'doc/ros.md', 'exec'), scope)  # pylint: disable=exec-used
    scope['generate_launch_description']()
    del os.environ['LD_PRELOAD']
    processes = [action for action in Recorder.made if 'executable' in action.options]
    if not processes:
        complain('a launch file in Python starts nothing')
    for process in processes:
        check_environment(process.options.get('additional_env', {}), type(process).__name__,
                          'libother.so')


# ---- C and C++ ----

def compiles(text, compiler, options, language):
    if not compiler:
        print('left out: code in', language, 'for there is no compiler for it here')
        return
    command = shlex.split(compiler) + options + [
        '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-I', source / 'include',
        '-I', source / 'tests/examples/shapes', '-x', language, '-']
    command += shlex.split(os.environ.get('RCUTILS_FLAGS', ''))
    done = subprocess.run(command, input=text, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        complain(f'code does not compile:\n{text}\n{done.stderr}')


def check_code(text):
    for code in blocks(text, 'c'):
        if 'weir/rcutils.h' in code and not os.environ.get('RCUTILS_FLAGS'):
            print('left out: the code for rclc, for there is no rcutils here')
        else:
            compiles(code, os.environ.get('CC'), ['-std=c11'], 'c')
    for code in blocks(text, 'cpp'):
        compiles(code, os.environ.get('CXX'), ['-std=c++17'], 'c++')


# ---- names ----

def check_names(text):
    options = set(re.findall(r'^WR_OPTION\([^"]*"([A-Z_]+)"', read('src/options.def'), re.M))
    headers = ' '.join(read(f'include/weir/{path.name}')
                       for path in (source / 'include/weir').iterdir())
    for name in sorted(set(re.findall(r'\bWEIR_[A-Z]+(?:_[A-Z]+)*\b', text))):
        if name not in options and not re.search(rf'\b{name}\b', headers):
            complain(f'doc/ros.md names {name}, which there is not')
    for name in sorted(set(re.findall(r'\bweir_[a-z_]+\b(?=\()|`(weir_[a-z_]+)`', text))):
        if name and not re.search(rf'\b{name}\b', headers):
            complain(f'doc/ros.md names {name}, which no header has')
    for name in sorted(set(re.findall(r'\b((?:bench|doc|src|tests)/[\w./]*\w)', text))):
        if not (source / name).exists() and not pathlib.Path(name).exists():
            complain(f'doc/ros.md names {name}, which there is not')


def read(name):
    return (source / name).read_text(encoding='utf-8')


def anchors(text):
    """What a heading is linked by."""
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')
            for heading in re.findall(r'^#+ (.*)$', text, re.M)}


def check_links():
    for page in [source / 'README.md', *sorted((source / 'doc').glob('**/*.md'))]:
        text = page.read_text(encoding='utf-8')
        prose = re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S)
        for target in re.findall(r'\]\(([^)\s]+)\)', prose):
            if '://' in target:
                continue
            path, _, anchor = target.partition('#')
            there = page.parent / path if path else page
            if not there.exists():
                complain(f'{page}: {target} leads nowhere')
            elif anchor and anchor not in anchors(there.read_text(encoding='utf-8')):
                complain(f'{page}: no heading for {target}')


def main():
    text = read('doc/ros.md')
    for language, check in ('xml', check_xml), ('python', check_python):
        found = blocks(text, language)
        if not found:
            complain(f'doc/ros.md has no {language}')
        for code in found:
            check(code)
    check_code(text)
    check_names(text)
    check_links()
    return bool(failures)


sys.exit(main())
