/**
 * Sending ratings to `factorflow worker` like a parent process in another language: a recorded Arrow stream
 * through a pipe. Prints the rate until all ratings are numbered, the seconds until they are sorted and those
 * of the iterations, and the bytes of factors received.
 *
 *     npm run build && node bench/worker.ts STREAM [RUNS] [FLAGS OF worker]        STREAM: written by `factorflow convert ratings/ STREAM.arrows`
 */
import { spawn } from 'node:child_process';
import { createReadStream, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describeMachine } from './machine.ts';

const root = resolve(import.meta.dirname, '..');
const [stream, runs = '3', ...flags] = process.argv.slice(2);
const rank = 64;
const maxIter = 3;

interface Header {
  readonly type: string;
  readonly phase?: string;
  readonly done?: number;
  readonly seconds?: number;
  readonly message?: string;
}

/** Runs the worker once; calls `see` with each frame. */
async function run(rows: number, see: (header: Header, payloadBytes: number) => void): Promise<void> {
  const child = spawn(process.execPath, [join(root, 'dist/programs/cli/main.js'), 'worker', ...flags], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { stdin, stdout } = child;
  let rest = Buffer.alloc(0);
  stdout.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 8 && rest.length >= 8 + rest.readUInt32LE(0) + rest.readUInt32LE(4)) {
      const [header, payload] = [rest.readUInt32LE(0), rest.readUInt32LE(4)];
      see(JSON.parse(rest.toString('utf8', 8, 8 + header)) as Header, payload);
      rest = rest.subarray(8 + header + payload);
    }
  });
  stdin.on('error', () => {});
  stdin.write(
    `${JSON.stringify({ protocol: 1, command: 'train', params: { rank, maxIter, regParam: 0.05 } })}\n`,
  );
  for await (const chunk of createReadStream(stream, { highWaterMark: 1 << 18 }))
    if (!stdin.write(chunk)) await new Promise((resume) => stdin.once('drain', resume));
  stdin.write(`${JSON.stringify({ rows })}\n`);
  const code = await new Promise((done) => child.on('close', done));
  if (code !== 0) throw new Error(`the worker ended with ${String(code)}`);
}

/** Number of rows of a stream of {int32, int32, float32}: a run that expects another number reports it. */
async function countRows(): Promise<number> {
  let rows = 0;
  await run(0, ({ type, message }) => {
    if (type === 'error')
      rows = Number(/([\d,]+) ratings arrived/.exec(message ?? '')?.[1].replaceAll(',', '') ?? 0);
  }).catch(() => {});
  return rows;
}

const rows = Number(process.env.ROWS ?? 0) || (await countRows());
console.log(
  `${describeMachine()}; ${rows.toLocaleString('en')} ratings, ${(statSync(stream).size / 1e6).toFixed(0)} MB; rank ${rank}, ${maxIter} iterations; flags ${flags.join(' ') || 'none'}`,
);
for (let count = 0; count < Number(runs); count++) {
  const start = performance.now();
  const seconds: Record<string, number> = {};
  let [factorBytes, device] = [0, 0];
  await run(rows, (header, payloadBytes) => {
    if (header.type === 'device') device = performance.now();
    if (header.type === 'progress' && header.phase !== undefined && header.seconds !== undefined)
      seconds[header.phase] = header.seconds;
    if (header.type === 'factors') factorBytes += payloadBytes;
  });
  const total = (performance.now() - start) / 1000;
  console.log(
    `device open after ${((device - start) / 1000).toFixed(2)} s; read ${(rows / seconds.read / 1e6).toFixed(2)} M ratings/s (${seconds.read.toFixed(2)} s); sort ${seconds.sort.toFixed(2)} s; train ${seconds.train.toFixed(2)} s; ${(factorBytes / 1e6).toFixed(0)} MB of factors; ${total.toFixed(2)} s in all`,
  );
}
