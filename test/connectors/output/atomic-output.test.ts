import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkWritable } from '../../../api/output/check-output.ts';
import { atomicOutput, checkOutput } from '../../../connectors/output/atomic-output.ts';
import { ownOwner, recoverOutput, removeTemporaries } from '../../../connectors/output/temporaries.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
const here = ownOwner().space;
const path = (name: string) => join(root, name);
const hidden = () => readdirSync(root).filter((name) => name.startsWith('.'));
const options = {
  kind: 'folder',
  overwrite: true,
  recognizes: (name: string) => name.endsWith('.data'),
} as const;

async function put(name: string, content: string): Promise<void> {
  const output = await atomicOutput(path(name), options);
  writeFileSync(join(output.temporary, 'a.data'), content);
  await output.commit();
}

/** The id of a process that has ended. */
const ended = spawnSync(process.execPath, ['-e', '']).pid;

test('the target changes at once, from old to new', async () => {
  await put('model', 'old');
  const output = await atomicOutput(path('model'), { ...options, durable: true });
  writeFileSync(join(output.temporary, 'b.data'), 'new');
  expect(readFileSync(path('model/a.data'), 'utf8')).toBe('old');
  await output.commit();
  expect(readdirSync(path('model'))).toEqual(['b.data']);
  expect(hidden()).toEqual([]);
});

test('discarding leaves the old one', async () => {
  await put('discarded', 'old');
  const output = await atomicOutput(path('discarded'), options);
  writeFileSync(join(output.temporary, 'a.data'), 'new');
  await output.discard();
  expect(readFileSync(path('discarded/a.data'), 'utf8')).toBe('old');
  expect(hidden()).toEqual([]);
});

test('foreign files that arrive meanwhile stop the replacement', async () => {
  await put('late', 'old');
  const output = await atomicOutput(path('late'), options);
  writeFileSync(path('late/notes.txt'), 'mine');
  await expect(output.commit()).rejects.toThrow(UsageError);
  await output.discard();
  expect(readdirSync(path('late')).sort()).toEqual(['a.data', 'notes.txt']);
});

test('a failure names the target as it was written, and the first failure is the one that is told', async () => {
  symlinkSync(root, path('link'));
  const target = path('link/./named');
  const output = await atomicOutput(target, options);
  const problem = new DataError(`cannot write ${output.temporary}/a.data`, {
    phase: 'write',
    file: join(output.temporary, 'a.data'),
    column: 'a',
  });
  rmSync(output.temporary, { recursive: true });
  expect(await output.fail(problem)).toMatchObject({
    name: 'DataError',
    summary: `cannot write ${target}/a.data`,
    details: { phase: 'write', file: `${target}/a.data`, column: 'a' },
  });
  const other = new Error('no file');
  expect(await output.fail(other)).toBe(other);
  const late = await atomicOutput(target, options);
  rmSync(late.temporary, { recursive: true });
  await expect(late.commit()).rejects.toMatchObject({ details: { file: target } });
  await late.discard();
});

test('the home folder and the working folder are never replaced, an empty folder always', async () => {
  await expect(checkOutput(homedir(), { ...options, recognizes: () => true })).rejects.toThrow(UsageError);
  await expect(checkOutput('.', { ...options, recognizes: () => true })).rejects.toThrow(UsageError);
  await expect(checkOutput('/', { ...options, recognizes: () => true })).rejects.toThrow(UsageError);
  mkdirSync(path('vacant'));
  await checkOutput(path('vacant'), { ...options, overwrite: false });
  writeFileSync(path('file'), '');
  await expect(checkOutput(path('file'), options)).rejects.toThrow(/is a file, not a folder/);
});

test('devices, pipes and sockets are never replaced, by a link either, nor folders that hold one', async () => {
  execFileSync('mkfifo', [path('pipe')]);
  const server = createServer().listen(path('socket'));
  await new Promise((resolve) => server.once('listening', resolve));
  symlinkSync(path('pipe'), path('pipe-link'));
  // A device of the test's own, which the system lets root alone make.
  const devices = process.getuid?.() === 0 ? [path('device')] : [];
  for (const device of devices) execFileSync('mknod', [device, 'c', '1', '3']);
  for (const [target, kind] of [
    ...devices.map((device) => [device, 'device']),
    [path('pipe'), 'pipe'],
    [path('socket'), 'socket'],
    [path('pipe-link'), 'pipe'],
  ]) {
    for (const overwrite of [true, false]) {
      const wanted = { kind: 'file', overwrite, recognizes: () => true } as const;
      await expect(checkOutput(target, wanted)).rejects.toThrow(
        `the output is a ${kind}, which is never replaced`,
      );
      await expect(atomicOutput(target, wanted)).rejects.toBeInstanceOf(UsageError);
    }
  }
  expect([
    ...devices.map((device) => statSync(device).isCharacterDevice()),
    statSync(path('pipe')).isFIFO(),
    statSync(path('socket')).isSocket(),
  ]).not.toContain(false);
  // It may become one while the output is made.
  const late = await atomicOutput(path('late-pipe'), {
    kind: 'file',
    overwrite: true,
    recognizes: () => true,
  });
  writeFileSync(late.temporary, 'new');
  execFileSync('mkfifo', [path('late-pipe')]);
  await expect(late.commit()).rejects.toThrow('the output is a pipe');
  await late.discard();
  mkdirSync(path('with-pipe'));
  execFileSync('mkfifo', [path('with-pipe/a.data')]);
  await expect(checkOutput(path('with-pipe'), options)).rejects.toThrow('it holds "a.data"');
  await new Promise((resolve) => server.close(resolve));
});

test('a link that leads nowhere yet stays a link to the output', async () => {
  symlinkSync('target-of-link', path('empty-link'));
  await put('empty-link', 'new');
  expect(readFileSync(path('target-of-link/a.data'), 'utf8')).toBe('new');
  symlinkSync('loop', path('loop'));
  await expect(put('loop', 'new')).rejects.toThrow(/ELOOP|links/);
});

test('a part of a model is no output under another name either', async () => {
  for (const part of ['metadata', 'userFactors', 'itemFactors'])
    mkdirSync(path(`whole/${part}`), { recursive: true });
  for (const part of ['itemFactors', 'itemFactors/a.data', 'notes.data']) {
    for (const kind of ['file', 'folder'] as const)
      await expect(checkOutput(path(`whole/${part}`), { ...options, kind })).rejects.toThrow(
        /the output would be inside a model: .*whole/,
      );
  }
});

test('removeTemporaries clears what is unfinished, at once', async () => {
  await put('signal', 'old');
  const output = await atomicOutput(path('signal'), options);
  writeFileSync(join(output.temporary, 'a.data'), 'half');
  removeTemporaries();
  expect(existsSync(output.temporary)).toBe(false);
  expect(readFileSync(path('signal/a.data'), 'utf8')).toBe('old');
});

test('a process killed in the middle leaves the old output, and the next one clears up', async () => {
  await put('killed', 'old');
  const script = `
    import { atomicOutput } from ${JSON.stringify(join(import.meta.dirname, '../../../connectors/output/atomic-output.ts'))};
    import { writeFileSync } from 'node:fs';
    const output = await atomicOutput(process.argv[1], { kind: 'folder', overwrite: true, recognizes: () => true });
    writeFileSync(output.temporary + '/a.data', 'half');
    process.kill(process.pid, 'SIGKILL');`;
  const done = spawnSync(
    process.execPath,
    ['--no-warnings', '--input-type=module', '-e', script, path('killed')],
    { encoding: 'utf8' },
  );
  expect(done.signal, done.stderr).toBe('SIGKILL');
  expect(hidden()).toHaveLength(1);
  expect(readFileSync(path('killed/a.data'), 'utf8')).toBe('old');
  await put('killed', 'new');
  expect(hidden()).toEqual([]);
  expect(readFileSync(path('killed/a.data'), 'utf8')).toBe('new');
});

test('an output moved aside by a process that died comes back', async () => {
  await put('aside', 'old');
  renameSync(path('aside'), path(`.aside.old-${here}-${ended}-0-0`));
  await recoverOutput(path('aside'));
  expect(readFileSync(path('aside/a.data'), 'utf8')).toBe('old');
});

test('an output moved aside counts as one that exists, before any long work', async () => {
  await put('counted', 'old');
  renameSync(path('counted'), path(`.counted.old-${here}-${ended}-0-0`));
  await expect(checkOutput(path('counted'), { ...options, overwrite: false })).rejects.toThrow(
    'exists already',
  );
  expect(readFileSync(path('counted/a.data'), 'utf8')).toBe('old');
});

test('what an earlier process of the same id left is cleared as well, and what this one makes is not', async ({
  skip,
}) => {
  if (process.platform !== 'linux') return skip('the system does not give the start of a process');
  const earlier = `.same.tmp-${here}-${process.pid}-1-0`;
  mkdirSync(path(earlier));
  const first = await atomicOutput(path('same'), options);
  const second = await atomicOutput(path('same'), options);
  expect(existsSync(path(earlier))).toBe(false);
  expect(existsSync(first.temporary)).toBe(true);
  await Promise.all([first.discard(), second.discard()]);
  expect(hidden()).toEqual([]);
});

test('readers need no permission to clear up', async () => {
  writeFileSync(path('plain'), '');
  await recoverOutput(path('plain/model'));
  await recoverOutput(path('missing/model'));
});

test('the temporaries of living processes and of other hosts are left alone', async () => {
  const names = [
    `.busy.tmp-${here}-${process.ppid}-0-0`,
    `.busy.tmp-0123456789ab-${ended}-0-0`,
    '.busy.tmp-notes',
  ];
  for (const name of names) mkdirSync(path(name));
  await put('busy', 'new');
  expect(hidden().sort()).toEqual([...names].sort());
});

test('a read-only place is a clear error', ({ skip }) => {
  if (process.getuid?.() === 0) return skip('root writes into read-only folders anyway');
  mkdirSync(path('readonly'), { mode: 0o500 });
  expect(() => execFileSync('touch', [path('readonly/x')], { stdio: 'ignore' })).toThrow();
  return expect(atomicOutput(path('readonly/out'), options)).rejects.toThrow(/permission denied/);
});

test('a name may have all the 255 bytes that file systems allow', async () => {
  const before = hidden();
  for (const name of ['x'.repeat(255), 'ä'.repeat(127)]) {
    await put(name, 'old');
    await put(name, 'new');
    expect(readFileSync(path(`${name}/a.data`), 'utf8')).toBe('new');
    const output = await atomicOutput(path(name), options);
    renameSync(output.temporary, output.temporary.replace(`-${process.pid}-`, `-${ended}-`));
    expect(hidden()).toHaveLength(before.length + 1);
    await put(name, 'newer');
    expect(hidden()).toEqual(before);
  }
});

test('an output where the system has no new folders is refused at once', async ({ skip }) => {
  if (process.platform !== 'linux') return skip('there is no /proc here');
  for (const target of ['/proc/none', '/proc/none/below']) {
    await expect(checkWritable(target)).rejects.toThrow(
      'cannot write the output: /proc takes no new folders',
    );
    await expect(atomicOutput(target, options)).rejects.toThrow(DataError);
  }
});

test('a link to nowhere makes no folders', async () => {
  symlinkSync(path('gone/a/b'), path('dangling'));
  await expect(atomicOutput(path('dangling'), options)).rejects.toThrow(
    `the output is a link to ${path('gone/a/b')}, whose folder does not exist`,
  );
  await expect(atomicOutput(path('dangling/below'), options)).rejects.toThrow(
    'dangling is a link to a folder that does not exist',
  );
  expect(existsSync(path('gone'))).toBe(false);
  // The folder of its target exists: the output is made there.
  symlinkSync(path('made later'), path('through'));
  await put('through', 'new');
  expect(readFileSync(path('made later/a.data'), 'utf8')).toBe('new');
});
