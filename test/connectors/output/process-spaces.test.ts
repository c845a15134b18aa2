/** Processes that share a folder and a host name, each in a space of process numbers of its own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CheckpointFolder } from '../../../connectors/checkpoint/checkpoint-folder.ts';
import { atomicOutput } from '../../../connectors/output/atomic-output.ts';
import { BEAT_MILLISECONDS, recoverInput, recoverOutput } from '../../../connectors/output/temporaries.ts';
import { SpillFolder } from '../../../connectors/spill/spill-folder.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
const connectors = join(import.meta.dirname, '../../../connectors');
const OWN_SPACE = ['-Urpf', '--mount-proc'];
const refused = spawnSync('unshare', [...OWN_SPACE, 'true']).status !== 0;
if (refused) console.warn('left out: the system refuses "unshare -Urpf --mount-proc"');

const started: ChildProcess[] = [];
let folder = '';
let number = 0;
beforeEach(() => {
  folder = join(root, `${number++}`);
  mkdirSync(folder);
});
afterEach(async () => {
  await Promise.all(started.splice(0).map(kill));
});
const inFolder = () => readdirSync(folder).sort();

/** Runs a script in a space of its own. Gives its process once it has printed a line. */
async function begin(script: string, space = OWN_SPACE) {
  const imports = `
    import { writeFileSync, renameSync } from 'node:fs';
    import { atomicOutput } from '${connectors}/output/atomic-output.ts';
    import { Temporary } from '${connectors}/output/temporaries.ts';
    import { SpillFolder } from '${connectors}/spill/spill-folder.ts';
    import { CheckpointFolder } from '${connectors}/checkpoint/checkpoint-folder.ts';
    const folder = ${JSON.stringify(folder)};
    const options = { kind: 'folder', overwrite: true, recognizes: () => true };
    const go = () => new Promise((resolve) => process.stdin.once('data', resolve));`;
  const node = [process.execPath, '--no-warnings', '--input-type=module', '-e', `${imports}\n${script}`];
  const child = spawn('unshare', ['--kill-child', ...space, ...node], { stdio: ['pipe', 'pipe', 'pipe'] });
  started.push(child);
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = new Promise<string>((resolve) => child.once('close', () => resolve(output + errors)));
  await Promise.race([new Promise((resolve) => child.stdout.once('data', resolve)), ended]);
  return { child, end: () => (child.stdin.end('go'), ended) };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => {
    child.once('close', resolve);
    child.kill('SIGKILL');
  });
}

/** Gives a folder and its files the time of a change some seconds ago. */
function age(path: string, seconds: number): void {
  const then = Date.now() / 1000 - seconds;
  for (const name of ['.', ...readdirSync(path)]) utimesSync(join(path, name), then, then);
}

const hidden = () => join(folder, inFolder().find((name) => name.startsWith('.')) ?? 'none');

describe.skipIf(refused)('a process in another space', () => {
  const write = `
    const output = await atomicOutput(folder + '/model', options);
    writeFileSync(output.temporary + '/a', 'new');
    console.log('ready');
    await go();
    await output.commit();
    console.log('done');`;

  it.each([
    ['of its own', OWN_SPACE],
    ['of its host, which shows other numbers', ['-Urpf']],
  ])('keeps its unfinished output while others read, with a /proc %s', async (_, space) => {
    const writer = await begin(write, space);
    await recoverOutput(join(folder, 'model'));
    expect(await recoverInput(join(folder, 'model'))).toBe(false);
    const other = await atomicOutput(join(folder, 'model'), {
      kind: 'folder',
      overwrite: true,
      recognizes: () => true,
    });
    await other.discard();
    // The folder looks old, the file that is written there does not.
    utimesSync(hidden(), 0, 0);
    await recoverOutput(join(folder, 'model'));
    expect(await writer.end()).toMatch(/done/);
    expect(readFileSync(join(folder, 'model', 'a'), 'utf8')).toBe('new');
    expect(inFolder()).toEqual(['model']);
  });

  it('leaves an output that is cleared after a silent minute', async () => {
    const { child } = await begin(write);
    await kill(child);
    await recoverOutput(join(folder, 'model'));
    expect(inFolder()).toHaveLength(1);
    age(hidden(), 50);
    await recoverOutput(join(folder, 'model'));
    expect(inFolder()).toHaveLength(1);
    age(hidden(), 70);
    await recoverOutput(join(folder, 'model'));
    expect(inFolder()).toEqual([]);
  });

  it('leaves an old output aside, which is moved back for the next reader', async () => {
    mkdirSync(join(folder, 'model'));
    writeFileSync(join(folder, 'model', 'a'), 'old');
    const { child } = await begin(`
      renameSync(folder + '/model', Temporary.aside(folder + '/model').path);
      console.log('ready');
      await go();`);
    await kill(child);
    expect(await recoverInput(join(folder, 'model'))).toBe(true);
    expect(readFileSync(join(folder, 'model', 'a'), 'utf8')).toBe('old');
    expect(inFolder()).toEqual(['model']);
  });

  it('keeps its spill folder', async () => {
    const other = await begin(`
      const spill = new SpillFolder(folder);
      writeFileSync(await spill.newFile(), 'x');
      console.log('ready');
      await go();
      writeFileSync(await spill.newFile(), 'x');
      await spill.close();
      console.log('done');`);
    const own = new SpillFolder(folder);
    await own.open();
    expect(inFolder()).toHaveLength(2);
    await own.close();
    expect(await other.end()).toMatch(/done/);
    expect(inFolder()).toEqual([]);
  });

  it('keeps its checkpoint folder', async () => {
    const other = await begin(`
      const kept = await CheckpointFolder.open(folder);
      console.log('ready');
      await go();
      await kept.write(2, {}, { users: new Float32Array(4) });
      await kept.close();
      console.log('done');`);
    await expect(CheckpointFolder.open(folder)).rejects.toThrow(
      /in use by process 1 on .*a run that was killed there is replaced after 60 s/,
    );
    expect(await other.end()).toMatch(/done/);
    expect(inFolder()).toEqual(['checkpoint-00000002']);
    await (await CheckpointFolder.open(folder)).close();
  });
});

it('a process gives signs of life for an unfinished output, for as long as that is one', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const output = await atomicOutput(join(folder, 'model'), {
      kind: 'folder',
      overwrite: true,
      recognizes: () => true,
    });
    for (let beat = 0; beat < 2; beat++) {
      age(output.temporary, 70);
      const before = statSync(output.temporary).mtimeMs;
      vi.advanceTimersByTime(BEAT_MILLISECONDS);
      await expect
        .poll(() => statSync(output.temporary).mtimeMs, { timeout: 60_000 })
        .toBeGreaterThan(before + 60_000);
    }
    await output.discard();
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
