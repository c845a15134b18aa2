/**
 * Ends training workers by killing the parent and by closing stdin, while other processes use the
 * processors. Prints median and longest seconds until the process has ended, and files it left.
 *
 *     npm run build && node bench/spark/ends.ts STREAM ROWS [TIMES] [BUSY]       STREAM: written by `factorflow convert ratings/ STREAM.arrows`
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describeMachine } from '../machine.ts';

const main = resolve(import.meta.dirname, '../../dist/programs/cli/main.js');
const [stream, rows, times = '20', busy = '0'] = process.argv.slice(2);
const spillDir = mkdtempSync(join(tmpdir(), 'ends-'));

if (process.send !== undefined) await parent();
else await measure();

/**
 * Starts and feeds a worker, and reports its process id once it trains. Closes the worker's stdin at any
 * message.
 */
async function parent(): Promise<void> {
  const child = spawn(
    process.execPath,
    [main, 'worker', '--device', 'cpu', '--spill-dir', process.env.SPILL ?? ''],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  let seen = '';
  child.stdout.on('data', (bytes: Buffer) => {
    seen = seen.slice(-100) + bytes.toString('latin1');
    if (seen.includes('"type":"iteration"')) process.send?.({ pid: child.pid });
  });
  process.once('message', () => child.stdin.destroy());
  child.stdin.on('error', () => {});
  child.stdin.write(
    `${JSON.stringify({ protocol: 1, command: 'train', params: { rank: 64, maxIter: 1_000_000 } })}\n`,
  );
  for await (const chunk of createReadStream(stream))
    if (!child.stdin.write(chunk)) await once(child.stdin, 'drain');
  child.stdin.write(`${JSON.stringify({ rows: Number(rows) })}\n`);
}

async function measure(): Promise<void> {
  const others = Array.from({ length: Number(busy) }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  );
  const end = async (how: 'killed' | 'closed'): Promise<number> => {
    const child = spawn(process.execPath, [import.meta.filename, stream, rows], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, SPILL: spillDir },
    });
    const [{ pid }] = (await once(child, 'message')) as [{ readonly pid: number }];
    await setTimeout(500);
    const start = performance.now();
    if (how === 'killed') child.kill('SIGKILL');
    else child.send('close');
    while (runs(pid)) await setTimeout(5);
    const seconds = (performance.now() - start) / 1000;
    await stopped(child);
    return seconds;
  };
  for (const how of ['killed', 'closed'] as const) {
    const seconds: number[] = [];
    for (let time = 0; time < Number(times); time++) seconds.push(await end(how));
    seconds.sort((a, b) => a - b);
    console.log(
      `parent ${how === 'killed' ? 'killed' : 'closes stdin'}: gone after ${seconds[seconds.length >> 1].toFixed(2)} s, at most ${seconds[seconds.length - 1].toFixed(2)} s, of ${times}; files left: ${readdirSync(spillDir).length}`,
    );
  }
  console.log(`${describeMachine()}; load ${loadavg()[0].toFixed(1)}, ${busy} of it busy beside`);
  for (const other of others) other.kill('SIGKILL');
  rmSync(spillDir, { recursive: true });
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** A zombie, which its parent has not waited for, no longer runs. */
function runs(pid: number): boolean {
  if (!existsSync(`/proc/${pid}`)) return false;
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}
