#!/usr/bin/python3
"""Scores accdiff on the puzzles of make.py: score.py FOLDER [-v]. BIN holds the programs.

Solved: every pair is right, and the exit status is 0. A pair of tensors with the same content as the
right one (ones, zeros, tied) is right, too, and the copy of what one side has tied may stay alone. Found: of the twin with a fault, the exit status is 1; it
is named if a finding names the tensor, or its partner."""
import json
import os
import re
import subprocess
import sys
from collections import Counter

BIN = os.environ.get('BIN', os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bin'))


def run(a, b):
    p = subprocess.run([BIN + '/accdiff', '-a', '-f', 'json', a, b], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rows = [json.loads(x) for x in p.stdout.decode().splitlines()]
    return p.returncode, rows, p.stderr.decode()


def short(name, known):
    """The name in the file, without that of the file."""
    while name and name not in known and '.' in name:
        name = name.split('.', 1)[1]
    return name


def main():
    folder, verbose = sys.argv[1], '-v' in sys.argv
    total = Counter()
    by = {}
    for case in sorted(os.listdir(folder)):
        d = os.path.join(folder, case)
        t = json.load(open(os.path.join(d, 'truth.json')))
        known = set(t['groups'])
        status, rows, err = run(os.path.join(d, t['a']), os.path.join(d, t['b']))
        got = {(short(r['a.name'], known), short(r['b.name'], known)) for r in rows
               if r['kind'] == 'pair' and r.get('a.name') and r.get('b.name')}
        want = {tuple(p) for p in t['pairs']}
        equal = {(short(r['a.name'], known), short(r['b.name'], known)) for r in rows
                 if r['kind'] == 'pair' and r.get('m.same') == 1}
        wrong = [p for p in got - want if p not in equal or p[0] in t['groups'] and t['groups'][p[0]] and
                 not any(p[0] == w[0] for w in want)]
        done = {x for p in got for x in p}
        tied = {tuple(p) for p in t['tied']}
        lost = [p for p in want - got - tied if p[0] not in done or p[1] not in done]
        solved = status == 0 and not wrong and not lost
        total['solved' if solved else 'unsolved'] += 1
        by.setdefault(t['family'], Counter())['solved' if solved else 'unsolved'] += 1
        if verbose and not solved:
            print(case, t['family'], t['cast'], t['a'], t['b'], 'UNSOLVED status %d' % status,
                  'wrong', wrong[:2], len(wrong), 'lost', lost[:2], len(lost), err[:100].strip())
            print('   ', [r.get('text') for r in rows if r['kind'] == 'finding'][:3])
        for w in t.get('twins', [{'path': t.get('bad_b'), 'fault': t.get('fault'), 'bad': t.get('bad'), 'of': 'b'}]):
            of_b = w.get('of') == 'b'
            s2, rows2, err2 = run(*[os.path.join(d, x) for x in ((t['a'], w['path']) if of_b else (w['path'], t['b']))])
            found = [r for r in rows2 if r['kind'] == 'finding' and r.get('what') in ('difference', 'missing')]
            said = ' '.join(r.get('text', '') + ' ' + r.get('name', '') for r in found)
            names = w['bad'] + [p[0] for p in t['pairs'] if p[1] in w['bad']]
            names += [p[1] for p in t['pairs'] if p[0] in w['bad']] if not of_b else []
            named = s2 == 1 and any(n in said for n in names)
            called = 'named' if named else 'found' if s2 == 1 else 'EQUAL' if s2 == 0 else 'trouble'
            total[called] += 1
            by.setdefault('fault: ' + w['fault'], Counter())[called] += 1
            if w.get('rank') is not None and named:
                ranks = {int(x) for r in found for x in re.findall(r'rank (\d+) of the|: ranks? (\d+)', r.get('text', ''))
                         for x in x if x}
                rank = 'rank ' + ('unsaid' if not ranks else 'right' if ranks & set(w['rank']) else 'wrong')
                total[rank] += 1
                by['fault: ' + w['fault']][rank] += 1
                if verbose and rank != 'rank right':
                    print(case, w['fault'], w['bad'], rank, ranks, w['rank'], said[:300])
            if verbose and called != 'named':
                print(case, t['family'], 'fault', w['fault'], w['bad'], w.get('rank'), called, err2[:200].strip(), said[:300])
    for k in sorted(by):
        print('%-24s %s' % (k, dict(by[k])))
    print('all: ' + ', '.join('%s %d' % x for x in sorted(total.items())))
    return 0


sys.exit(main())
