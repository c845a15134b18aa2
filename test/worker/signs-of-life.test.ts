import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { program, WorkerHere, WorkerParent } from '../support/worker-parent.ts';
import { errorOf, rows, stream } from './fed-workers.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();

describe('the sign of life', () => {
  /** A training that goes on until it is stopped. */
  async function endless(options: ConstructorParameters<typeof WorkerParent>[0] = {}): Promise<WorkerParent> {
    const parent = new WorkerParent(options);
    parent.feed({ params: { rank: 8, maxIter: 1_000_000 } }, stream, rows);
    await parent.frame('iteration');
    return parent;
  }

  it('is stdin: the worker stops when it closes', async () => {
    const parent = await endless();
    parent.close();
    const ended = await parent.ended;
    expect({ code: ended.code, signal: ended.signal }).toEqual({ code: 130, signal: null });
    expect(errorOf(ended)).toMatchObject({ type: 'error', code: 'CANCELLED', exitCode: 130 });
  });

  it('is also a byte 0 on stderr, at an interval that the parent chooses, until the process is stopped', async () => {
    const parent = new WorkerParent();
    let beats = 0;
    parent.child.stderr?.on('data', (bytes: Buffer) => (beats += bytes.filter((byte) => byte === 0).length));
    parent.feed({ params: { rank: 8, maxIter: 1_000_000 }, heartbeat: 20 }, stream, rows);
    await parent.frame('iteration');
    const before = beats;
    await vi.waitUntil(() => beats > before + 5, 20_000);
    parent.child.kill('SIGSTOP');
    await setTimeout(200);
    const stopped = beats;
    await setTimeout(400);
    expect(beats).toBe(stopped);
    parent.child.kill('SIGKILL');
    await parent.ended;
  });

  it.each([5, 1e9, 'often'])('is refused as %s', async (heartbeat) => {
    const parent = new WorkerHere();
    parent.feed({ heartbeat }, stream, rows);
    const ended = await parent.ended;
    expect(ended.code).toBe(2);
    expect(errorOf(ended).message).toMatch(/heartbeat must be from 10 to 60000 milliseconds/);
  });

  it.each([
    ['in the middle of the ratings', '{"protocol":1,"command":"train"}\n'],
    ['between two requests', '{"protocol":1,"command":"rows"}\n'],
    ['in a training', undefined],
  ])('is not waited for at SIGTERM: %s', async (_, line) => {
    const parent = line === undefined ? await endless() : new WorkerParent();
    if (line !== undefined) {
      parent.write(line);
      await parent.frame('device');
      if (line.includes('train')) parent.write(stream.subarray(0, stream.length / 2));
    }
    parent.child.kill('SIGTERM');
    const ended = await parent.ended;
    expect({ code: ended.code, signal: ended.signal }).toEqual({ code: 130, signal: null });
    expect(errorOf(ended)).toMatchObject({ type: 'error', code: 'CANCELLED' });
  });

  it('ends where nothing reads the frames any more', async () => {
    const parent = new WorkerParent();
    parent.child.stdout?.destroy();
    parent.feed({ params: { rank: 8, maxIter: 1_000_000 } }, stream, rows);
    const [code] = (await once(parent.child, 'exit')) as [number | null];
    expect(code).toBe(130);
  });

  it('counts while the main thread is busy: the process is killed then, and leaves no files', async () => {
    const block =
      "process.on('SIGUSR2', () => { process.getBuiltinModule('fs').writeSync(2, 'blocked'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); })";
    const spill = mkdtempSync(join(folder, 'spill-'));
    const parent = await endless({
      nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(block)}`],
      flags: ['--device', 'cpu', '--workers', '1', '--spill-dir', spill],
    });
    const spilled = readdirSync(spill).find((name) => name.includes(`-${parent.child.pid}-`));
    expect(spilled).toBeDefined();
    writeFileSync(join(spill, String(spilled), 'part'), 'ratings');
    const blocked = new Promise<void>((resolve) => parent.child.stderr?.once('data', () => resolve()));
    parent.child.kill('SIGUSR2');
    await blocked;
    parent.close();
    expect((await parent.ended).signal).toBe('SIGKILL');
    expect(readdirSync(spill)).toEqual([]);
    rmSync(spill, { recursive: true });
  });

  it('is the parent too, where its stdin stays open', async () => {
    const script = `const { spawn } = require('node:child_process');
      spawn(process.execPath, [${JSON.stringify(program)}, 'worker', '--device', 'cpu', '--workers', '1'], { stdio: [3, 4, 'ignore'] });
      setInterval(() => {}, 1000);`;
    const between = spawn(process.execPath, ['-e', script], {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe', 'pipe'],
    });
    const [input, output] = [between.stdio[3], between.stdio[4]] as unknown as [
      NodeJS.WritableStream,
      NodeJS.ReadableStream,
    ];
    const closed = new Promise<void>((resolve) => output.once('end', () => resolve()));
    let seen = '';
    const training = new Promise<void>((resolve) =>
      output.on('data', (bytes: Buffer) => {
        seen += bytes.toString('latin1');
        if (seen.includes('"type":"iteration"')) resolve();
      }),
    );
    input.write(
      `${JSON.stringify({ protocol: 1, command: 'train', params: { rank: 8, maxIter: 1_000_000 } })}\n`,
    );
    input.write(stream);
    input.write(`{"rows":${rows}}\n`);
    await training;
    between.kill('SIGKILL');
    // The worker's end of the pipe closes with its last thread.
    await closed;
  });
});
