/** `npm run torture` finds what it should find. */
import { expect, test } from 'vitest';
import { type Ended, wrongEnd } from '../../scripts/torture/commands.ts';
import { type ReadOutcome, wrongReading } from '../../scripts/torture/attacks/lies.ts';

const allowed = { codes: [3, 4], names: ['/data/in.csv'], mustSucceed: false };
const ended = (code: number | null, stderr = '', more: Partial<Ended> = {}): Ended => ({
  code,
  stdout: '',
  stderr,
  signal: null,
  hung: false,
  milliseconds: 1,
  ...more,
});

test.each([
  ['success', ended(0)],
  ['an error with the file', ended(3, 'factorflow: read: the disk reports an error (/data/in.csv)')],
  ['a spilled file', ended(4, 'factorflow: full (/data/in.csv, /s/.factorflow-spill.tmp-ab-1-2-3/1)')],
])('%s is allowed', (_name, end) => {
  expect(wrongEnd(end, allowed)).toBeUndefined();
});

test.each([
  ['hangs', ended(null, '', { hung: true, signal: 'SIGKILL' })],
  ['is ended by SIGSEGV', ended(null, '', { signal: 'SIGSEGV' })],
  ['ends with 1', ended(1, 'factorflow: internal error: x')],
  ['ends with 2', ended(2, 'factorflow: no such flag (/data/in.csv)')],
  ['ends with a stack', ended(3, 'factorflow: This is a bug in FactorFlow (/data/in.csv)')],
  ['ends with a stack', ended(3, 'factorflow: /data/in.csv\n    at read (file:///main.js:3:14)')],
  ['names none of /data/in.csv', ended(3, 'factorflow: EIO: i/o error, read')],
  ['names a temporary', ended(4, 'factorflow: full (/data/in.csv, /data/.out.csv.tmp-ab-1-2-3)')],
])('found: a command that %s', (wrong, end) => {
  expect(wrongEnd(end, allowed)).toMatch(new RegExp(`^${wrong}`));
});

test('found: an error where none may be', () => {
  const end = ended(3, 'factorflow: /data/in.csv');
  expect(wrongEnd(end, { ...allowed, mustSucceed: true })).toMatch(/^fails with 3/);
});

const learned = { url: 'http://host/in.csv', digests: ['first', 'second'], mib: 100 };
const lie = { lie: '503', first: 1, times: 2, size: 0, versioned: [] };
const refused: ReadOutcome = { ended: ended(3, 'factorflow: http://host/in.csv'), mib: 100, digest: '' };
const passed: ReadOutcome = { ended: ended(0), mib: 100, digest: 'second' };

test('a run with a lying server may pass with the bits of a good one, or be refused', () => {
  expect(wrongReading(learned, lie, passed)).toBeUndefined();
  expect(wrongReading(learned, { ...lie, lie: '404' }, refused)).toBeUndefined();
  expect(wrongReading(learned, { ...lie, times: 0 }, refused)).toBeUndefined();
});

test.each([
  ['other bits', lie, { ...passed, digest: 'third' }, 'gives other bits'],
  ['no output', lie, { ...passed, digest: '' }, 'gives other bits'],
  ['an output of a failure', { ...lie, times: 0 }, { ...refused, digest: 'first' }, 'leaves an output'],
  ['much memory', lie, { ...passed, mib: 500 }, 'takes 500 MiB, and 100 usually'],
  ['a refusal of a server that is busy twice', lie, refused, 'fails with 3'],
  ['a refusal without a lie', undefined, refused, 'fails with 3'],
])('found with a lying server: %s', (_name, given, outcome, wrong) => {
  expect(wrongReading(learned, given, outcome)).toContain(wrong);
});
