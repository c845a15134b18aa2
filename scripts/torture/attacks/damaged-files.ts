import { type ChildProcess, fork } from 'node:child_process';
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Int32, vectorFromArray } from 'apache-arrow';
import {
  flipCase,
  fuzzCase,
  type FuzzKind,
  fuzzKinds,
  type FuzzOutcome,
  fuzzTarget,
} from '../../../test/support/damage/fuzz-targets.ts';
import type { MakeAttack } from '../attack.ts';
import {
  loadModel,
  type SavedModel,
  saveModel,
  type StoredModel,
} from '../../../connectors/model/model-store.ts';
import { DataError } from '../../../engine/errors.ts';

const PATIENCE_MILLISECONDS = 60_000;
/** Most memory of a process that reads files of some kilobytes. */
const LARGEST_MIB = 1024;
/** Files of each kind in a round, and files with one flipped bit. */
const FILES = { any: 40, bit: 120 };
/** Bytes of a page of memory, the unit of /proc/PID/statm. */
const MEMORY_PAGE = 4096;

interface Case {
  readonly number: number;
  /** The kind of damage: one flipped bit, or any mutation. */
  readonly damage: 'bit' | 'any';
}

/** Reads the cases that the parent sends, which watches clock and memory. */
async function work([kind, folder]: [FuzzKind, string]): Promise<void> {
  const target = await fuzzTarget(kind, folder);
  process.on('message', async ({ number, damage }: Case) => {
    const outcome = await (damage === 'bit' ? flipCase : fuzzCase)(target, folder, number);
    process.send?.(outcome);
  });
}

/** A process that reads, under a clock and a limit of memory. It is replaced when it hangs, grows or dies. */
class Watched {
  #child: ChildProcess | undefined;
  readonly #args: readonly string[];

  constructor(kind: FuzzKind, folder: string) {
    this.#args = ['read', kind, folder];
  }

  async run(asked: Case): Promise<FuzzOutcome> {
    const execArgv = ['--max-old-space-size=700'];
    const child = (this.#child ??= fork(import.meta.filename, this.#args, { execArgv }));
    const { promise, resolve } = Promise.withResolvers<FuzzOutcome>();
    const started = performance.now();
    const timer = setInterval(() => {
      const mebibytes = residentOf(child.pid);
      if (mebibytes > LARGEST_MIB) resolve({ found: `${mebibytes.toFixed(0)} MiB resident` });
      if (performance.now() - started > PATIENCE_MILLISECONDS)
        resolve({ found: `hangs: no answer in ${PATIENCE_MILLISECONDS / 1000} s` });
    }, 50);
    child.once('message', (answer: FuzzOutcome) => resolve(answer));
    child.once('exit', (code, signal) => resolve({ found: `ends with ${code ?? signal}` }));
    child.send(asked);
    const answer = await promise;
    clearInterval(timer);
    child.removeAllListeners();
    if ('found' in answer) this.close();
    return answer;
  }

  close(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }
}

/** Resident memory of a process in MiB; 0 where the system has no /proc. */
function residentOf(pid: number | undefined): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * MEMORY_PAGE) / 2 ** 20;
  } catch {
    return 0;
  }
}

/**
 * Damages Parquet, CSV, NDJSON, Arrow and model files and reads them: each is read, or refused with a message,
 * in seconds and in a gibibyte of memory. Most have one flipped bit: every bit of small files of each format
 * comes in turn.
 */
export const damagedFiles: MakeAttack = ({ folder, random, count, find }) => {
  const readers = fuzzKinds.map((kind) => ({ kind, watched: new Watched(kind, join(folder, kind)) }));
  let bit = random(2 ** 20);
  return {
    round: async () => {
      for (const { kind, watched } of readers) {
        const first = { any: random(2 ** 30), bit };
        for (const damage of ['any', 'bit'] as const)
          for (let next = 0; next < FILES[damage]; next++) {
            const number = first[damage] + next;
            const outcome = await watched.run({ number, damage });
            if ('found' in outcome) find(`${kind}, ${damage} ${number}: ${outcome.found}`);
            count(`${kind} ${'found' in outcome ? 'found' : outcome.result}`);
          }
      }
      bit += FILES.bit;
    },
    close: async () => {
      for (const { watched } of readers) watched.close();
    },
  };
};

const MIXES = 20;
const files = ['userFactors', 'itemFactors', 'itemCounts', 'userMeans', 'itemMeans'].map(
  (folder) => `${folder}/part-00000.parquet`,
);
const METADATA = 'metadata/part-00000';

/**
 * Mixes the files of two models of the same users, items and rank, as a copy does that is cut off half-way: the
 * mixture is refused, or it is one of the two models.
 */
export const swappedFiles: MakeAttack = ({ folder, random, count, find }) => ({
  round: async () => {
    const [users, items, rank] = [1 + random(60), 1 + random(30), 1 + random(12)];
    const paths = ['first', 'second'].map((name) => join(folder, name));
    const texts: string[] = [];
    for (const path of paths) {
      const number = () => random(2 ** 20) / 1024;
      await saveModel(path, anyModel(users, items, rank, number), { overwrite: true });
      texts.push(textOf(await loadModel(path)));
    }
    const mixed = join(folder, 'mixed');
    for (let mix = 0; mix < MIXES; mix++) {
      rmSync(mixed, { recursive: true, force: true });
      cpSync(paths[0], mixed, { recursive: true });
      const taken = [...files, METADATA].filter(() => random(2) === 0);
      for (const file of taken) copyFileSync(join(paths[1], file), join(mixed, file));
      const last = taken.at(-1);
      if (last !== undefined && random(3) === 0) {
        const bytes = readFileSync(join(mixed, last));
        writeFileSync(join(mixed, last), bytes.subarray(0, random(bytes.length)));
      }
      const outcome = await loadModel(mixed).then(textOf, (error: unknown) => error);
      if (outcome instanceof DataError && outcome.message.includes(mixed)) count('refused');
      else if (outcome === texts[0] || outcome === texts[1]) count('one of the two');
      else find(`${taken.join(', ')} of the second model: ${String(outcome).slice(0, 500)}`);
    }
  },
});

function anyModel(users: number, items: number, rank: number, number: () => number): SavedModel {
  const numbers = (length: number) => Float32Array.from({ length }, number);
  const ids = (length: number) => vectorFromArray([...Array(length).keys()], new Int32());
  return {
    rank,
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    factorflow: {},
    userIds: ids(users),
    userFactors: numbers(users * rank),
    itemIds: ids(items),
    itemFactors: numbers(items * rank),
    itemCounts: Uint32Array.from(numbers(items)),
    means: { users: numbers(users), items: numbers(items) },
  };
}

function textOf({ userIds, itemIds, ...rest }: StoredModel): string {
  return JSON.stringify([[...userIds], [...itemIds], rest]);
}

if (process.argv[2] === 'read') await work(process.argv.slice(3) as [FuzzKind, string]);
