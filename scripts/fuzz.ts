/**
 * Damages 10,000 Parquet, CSV, NDJSON, Arrow and model files and reads them: each must be read, or be refused with a message, in
 * seconds and under 1 GB. The same numbers give the same files.
 *
 *     node scripts/fuzz.ts [cases, default 10000] [first, default 0] [kind]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { fuzzCase, fuzzKinds, fuzzTarget } from '../test/support/fuzz-targets.ts';
import type { FuzzKind } from '../test/support/fuzz-targets.ts';

const PATIENCE_MILLISECONDS = 20_000;
const LARGEST_MIB = 1000;

interface Answer {
  readonly number: number;
  readonly outcome: Awaited<ReturnType<typeof fuzzCase>>;
  readonly milliseconds: number;
}

/** Reads the cases that the main thread sends, which watches the clock. */
async function work({ kind, folder }: { kind: FuzzKind; folder: string }): Promise<void> {
  const target = await fuzzTarget(kind, folder);
  parentPort?.on('message', async (number: number) => {
    const started = performance.now();
    const outcome = await fuzzCase(target, folder, number);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    parentPort?.postMessage({ number, outcome, milliseconds: performance.now() - started } satisfies Answer);
  });
}

/** A thread that reads, under a clock. It is replaced when it hangs or dies. */
class Watched {
  private worker: Worker | undefined;
  private answered: (answer: Answer | string) => void = () => {};
  private readonly kind: FuzzKind;
  private readonly folder: string;

  constructor(kind: FuzzKind, folder: string) {
    this.kind = kind;
    this.folder = folder;
  }

  /** The answer, or the problem. */
  async run(number: number): Promise<Answer | string> {
    const answer = await this.ask(number);
    if (typeof answer === 'string') await this.close();
    return answer;
  }

  async close(): Promise<void> {
    const worker = this.worker;
    this.worker = undefined;
    await worker?.terminate();
  }

  private ask(number: number): Promise<Answer | string> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(`hangs: no answer in ${PATIENCE_MILLISECONDS / 1000} s`), PATIENCE_MILLISECONDS);
      this.answered = (answer) => {
        clearTimeout(timer);
        resolve(answer);
      };
      this.worker ??= this.start();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      this.worker.postMessage(number);
    });
  }

  private start(): Worker {
    const worker = new Worker(import.meta.filename, { workerData: { kind: this.kind, folder: this.folder }, resourceLimits: { maxOldGenerationSizeMb: 700 } });
    worker.on('message', (answer: Answer) => this.answered(answer));
    worker.on('error', (error) => this.answered(`crashes: ${error instanceof Error ? error.stack : String(error)}`));
    worker.on('exit', (code) => this.answered(`ends with ${code}`));
    return worker;
  }
}

async function main(cases: number, first: number, kinds: readonly FuzzKind[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-fuzz-'));
  const finds: string[] = [];
  try {
    for (const kind of kinds) {
      const watched = new Watched(kind, join(folder, kind));
      const counts = { read: 0, refused: 0, found: 0, slowest: 0, peakMiB: 0 };
      const started = performance.now();
      for (let number = first; number < first + Math.ceil(cases / kinds.length); number++) {
        const answer = await watched.run(number);
        const rss = process.memoryUsage.rss() / 2 ** 20;
        counts.peakMiB = Math.max(counts.peakMiB, rss);
        const problem = typeof answer === 'string' ? answer : 'found' in answer.outcome ? answer.outcome.found : undefined;
        if (problem === undefined && rss > LARGEST_MIB) finds.push(`${kind} ${number}: ${rss.toFixed(0)} MiB resident`);
        if (problem !== undefined) {
          counts.found++;
          finds.push(`${kind} ${number}: ${problem}`);
          console.error(finds.at(-1));
        } else if (typeof answer !== 'string' && 'result' in answer.outcome) {
          counts[answer.outcome.result]++;
          counts.slowest = Math.max(counts.slowest, answer.milliseconds);
        }
      }
      await watched.close();
      const { read, refused, found, slowest, peakMiB } = counts;
      console.log(`${kind.padEnd(8)} ${read} read, ${refused} refused, ${found} found; slowest ${slowest.toFixed(0)} ms, up to ${peakMiB.toFixed(0)} MiB, ${((performance.now() - started) / 1000).toFixed(0)} s`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(finds.length === 0 ? 'nothing found' : `${finds.length} found`);
  process.exitCode = finds.length === 0 ? 0 : 1;
}

if (isMainThread) {
  const [cases = '10000', first = '0', kind] = process.argv.slice(2);
  await main(Number(cases), Number(first), kind === undefined ? fuzzKinds : fuzzKinds.filter((name) => name === kind));
} else await work(workerData as { kind: FuzzKind; folder: string });
