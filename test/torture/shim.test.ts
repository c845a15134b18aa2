/** The library that makes calls of the file system fail, and commands of the built program with it. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { buildShim, type Fault, faultyEnv } from '../support/faults/shim.ts';
import { ratings, start } from '../cli/run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const built = buildShim();
const shim = 'file' in built ? built.file : '';
if ('reason' in built) console.warn(`left out: ${built.reason}`);
afterAll(() => rmSync(shim, { force: true }));

const root = temporaryFolder();
const [below, log] = [join(root, 'below'), join(root, 'calls.log')];
mkdirSync(below);
const [file, outside] = [join(below, 'file'), join(root, 'file')];
const text = '0123456789'.repeat(10);
for (const path of [file, outside]) writeFileSync(path, text);

/** Runs a script, whose `fs` is node:fs, and gives what it prints. */
function scripted(script: string, fault: Fault) {
  const { env, read } = faultyEnv(shim, below, fault, log);
  const source = `import * as fs from 'node:fs'; const file = ${JSON.stringify(file)}; ${script}`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  expect(stderr).toBe('');
  return { stdout: stdout.trim(), changed: read() };
}

const errorOf = (call: string) =>
  `try { ${call}; console.log('passed') } catch (error) { console.log(error.code) }`;

describe.skipIf(shim === '')('a call', () => {
  const failing = [
    ['open', 'EMFILE', errorOf(`fs.openSync(file, 'r')`)],
    ['read', 'EIO', errorOf(`fs.readFileSync(file)`)],
    ['write', 'ENOSPC', errorOf(`fs.writeFileSync(file + 2, 'x')`)],
    ['close', 'EIO', errorOf(`fs.closeSync(fs.openSync(file, 'r'))`)],
    ['sync', 'EIO', errorOf(`fs.fsyncSync(fs.openSync(file, 'r'))`)],
    ['truncate', 'EIO', errorOf(`fs.ftruncateSync(fs.openSync(file + 2, 'w'), 1)`)],
    ['rename', 'EIO', errorOf(`fs.renameSync(file + 2, file + 3)`)],
  ] as const;
  it.each(failing)('%s fails with %s', (call, action, script) => {
    const { stdout, changed } = scripted(script, { call, first: 1, times: 1, action });
    expect(stdout).toBe(action);
    expect(changed).toMatchObject([{ call }]);
    expect(scripted(script, { call, first: 3, times: 1, action })).toEqual({ stdout: 'passed', changed: [] });
  });

  it('takes a part of the bytes', () => {
    const read = `console.log(fs.readSync(fs.openSync(file, 'r'), new Uint8Array(100)))`;
    expect(scripted(read, { call: 'read', first: 1, times: 1, action: 'short-30' }).stdout).toBe('30');
    // Node writes the rest by itself.
    const write = `const to = fs.openSync(file + 4, 'w');
      console.log(fs.writeSync(to, 'abcd'), fs.writevSync(to, [Buffer.from('ab'), Buffer.from('c')]))`;
    const { stdout, changed } = scripted(write, { call: 'write', first: 1, times: 0, action: 'short-50' });
    expect(stdout).toBe('4 3');
    expect(changed.length).toBeGreaterThan(4);
    expect(readFileSync(`${file}4`, 'utf8')).toBe('abcdabc');
  });

  it('of a file elsewhere is left alone', () => {
    const script = `console.log(fs.readFileSync(${JSON.stringify(outside)}, 'utf8'))`;
    const { stdout, changed } = scripted(script, { call: 'any', first: 1, times: 0, action: 'EIO' });
    expect([stdout, changed]).toEqual([text, []]);
  });
});

describe.skipIf(shim === '')('a command', () => {
  const run = (line: readonly string[], fault: Fault) =>
    start([...line, '--quiet'], { env: faultyEnv(shim, below, fault, log).env }).outcome;

  it('gives the same bytes where all reads and writes are short', async () => {
    const [csv, copy] = [join(below, 'rows.csv'), join(below, 'copy.csv')];
    const short = { call: 'any', first: 1, times: 0, action: 'short-7' } as const;
    expect(await run(['convert', ratings, csv], { ...short, action: 'none' })).toMatchObject({ code: 0 });
    expect(await run(['convert', csv, copy], short)).toMatchObject({ code: 0 });
    expect(readFileSync(copy).equals(readFileSync(csv))).toBe(true);
  });

  it.each([
    ['write', 'EAGAIN', 'the system takes no more bytes (EAGAIN)', 3],
    ['close', 'ENOSPC', 'the disk is full', 4],
    ['close', 'EMFILE', 'too many open files', 4],
  ] as const)('names its output where %s fails with %s', async (call, action, summary, code) => {
    const output = join(below, `${call}-${action}`);
    const line =
      call === 'write'
        ? ['convert', ratings, `${output}.csv`]
        : ['generate', '--preset', 'movielens20m', '--scale', '0.001', '--output', output];
    const ended = await run(line, { call, first: 1, times: 0, action });
    expect(ended).toMatchObject({ code, stderr: expect.stringContaining(summary) });
    expect(ended.stderr).toContain(line.at(-1));
    expect(readdirSync(below).filter((name) => name.includes('.tmp-'))).toEqual([]);
  });
});
