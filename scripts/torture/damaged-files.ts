import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { fuzzCase, fuzzKinds, fuzzTarget } from '../../test/support/damage/fuzz-targets.ts';
import type { FuzzKind } from '../../test/support/damage/fuzz-targets.ts';
import type { MakeAttack } from './attack.ts';

const PATIENCE_MILLISECONDS = 60_000;
const LARGEST_MIB = 1500;
/** Files of each kind in a round. */
const FILES = 40;

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
      const timer = setTimeout(
        () => resolve(`hangs: no answer in ${PATIENCE_MILLISECONDS / 1000} s`),
        PATIENCE_MILLISECONDS,
      );
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
    const worker = new Worker(import.meta.filename, {
      workerData: { kind: this.kind, folder: this.folder },
      resourceLimits: { maxOldGenerationSizeMb: 700 },
    });
    worker.on('message', (answer: Answer) => this.answered(answer));
    worker.on('error', (error) =>
      this.answered(`crashes: ${error instanceof Error ? error.stack : String(error)}`),
    );
    worker.on('exit', (code) => this.answered(`ends with ${code}`));
    return worker;
  }
}

/**
 * Damages Parquet, CSV, NDJSON, Arrow and model files and reads them: each is read, or refused with a
 * message, in seconds and in bounded memory.
 */
export const damagedFiles: MakeAttack = ({ folder, random, count, find }) => {
  const readers = fuzzKinds.map((kind) => ({ kind, watched: new Watched(kind, join(folder, kind)) }));
  return {
    name: 'damaged files',
    round: async () => {
      for (const { kind, watched } of readers) {
        const first = random(2 ** 30);
        for (let number = first; number < first + FILES; number++) {
          const answer = await watched.run(number);
          const resident = process.memoryUsage.rss() / 2 ** 20;
          const problem =
            typeof answer === 'string'
              ? answer
              : 'found' in answer.outcome
                ? answer.outcome.found
                : resident > LARGEST_MIB
                  ? `${resident.toFixed(0)} MiB resident`
                  : undefined;
          if (problem !== undefined) find(`${kind} ${number}: ${problem}`);
          count(
            `${kind} ${typeof answer !== 'string' && 'result' in answer.outcome ? answer.outcome.result : 'found'}`,
          );
        }
      }
    },
    close: async () => {
      for (const { watched } of readers) await watched.close();
    },
  };
};

if (!isMainThread) await work(workerData as { kind: FuzzKind; folder: string });
