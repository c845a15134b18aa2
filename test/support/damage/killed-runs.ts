/**
 * Runs of `train` with checkpoints. Each is killed at a random moment after its first checkpoint, and
 * resumed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CounterRandom } from '../../../engine/random.ts';
import { type Outcome, startProcess } from '../start-process.ts';

const program = resolve(import.meta.dirname, '../../../dist/programs/cli/main.js');

/** Milliseconds between two looks for the first checkpoint. */
const LOOK = 2;

export interface KilledRuns {
  /** The command line without the program, the model's folder and the flags of checkpoints. */
  readonly train: readonly string[];
  readonly interval: number;
  readonly kills: number;
  readonly seed: number;
  /** A folder that exists, with nothing but ratings in it. */
  readonly folder: string;
  readonly onKill?: (kill: Kill) => void;
}

/** A run that was killed, and the run that resumed it. */
export interface Kill {
  /** The number of iterations that the killed run had reported. */
  readonly told: number;
  /** The iteration that the next run went on from. */
  readonly resumedFrom: number;
  /** True if the killed run was writing a checkpoint: there was a temporary file. */
  readonly writing: boolean;
  /** Files that differ from the model of a run that was not killed. */
  readonly differing: readonly string[];
  /** Files that the resumed run left, other than the model and two checkpoints. */
  readonly left: readonly string[];
}

/**
 * A command line whose ratings are in spill files while it trains: the budget has no room for both the
 * process and their blocks.
 */
export function spillingRun(folder: string, iterations = 30): string[] {
  const count = 400_000;
  const lines = Array.from(
    { length: count },
    (_, k) => `${(k * 7919) % 700},${Math.floor(k / 700)},${(k % 5) + 1}`,
  );
  const file = join(folder, 'ratings.csv');
  writeFileSync(file, `user,item,rating\n${lines.join('\n')}\n`);
  return [
    'train',
    file,
    '--device',
    'cpu',
    '--workers',
    '1',
    '--memory-budget',
    '216MB',
    '--rank',
    '4',
    '--max-iter',
    String(iterations),
  ];
}

export async function killedRuns({
  train,
  interval,
  kills,
  seed,
  folder,
  onKill = () => {},
}: KilledRuns): Promise<Kill[]> {
  const random = new CounterRandom(seed);
  const [plain, model, checkpoints, temporary] = ['plain', 'model', 'checkpoints', 'temporary'].map((name) =>
    join(folder, name),
  );
  mkdirSync(temporary);
  const line = (directory: string) => [...train, '--model-dir', directory, '--force', '--json'];
  const checkpointed = [
    ...line(model),
    '--checkpoint-dir',
    checkpoints,
    '--checkpoint-interval',
    String(interval),
    '--resume',
  ];
  const run = (args: readonly string[]) =>
    startProcess([process.execPath, program, ...args], { env: { TMPDIR: temporary } });
  const whole = run(line(plain));
  await whole.stderrMatches(iterated).catch(() => {});
  const began = performance.now();
  requireDone(await whole.outcome);
  const most = performance.now() - began;
  const clear = () => [model, checkpoints].forEach((path) => rmSync(path, { recursive: true, force: true }));
  const made: Kill[] = [];
  for (let attempt = 0; made.length < kills; attempt++) {
    clear();
    const killed = run(checkpointed);
    await firstCheckpoint(checkpoints, killed.outcome);
    await wait(most * random.uniform(attempt));
    killed.child.kill('SIGKILL');
    const { code, stderr } = await killed.outcome;
    // It had ended by then.
    if (code !== null) continue;
    const writing = [folder, checkpoints]
      .flatMap((path) => readdirSync(path))
      .some((name) => name.startsWith('.'));
    const { stdout } = requireDone(await run(checkpointed).outcome);
    const { resumedFrom } = JSON.parse(stdout) as { resumedFrom: { iteration: number } | null };
    const kill = {
      told: lastTold(stderr),
      resumedFrom: resumedFrom?.iteration ?? 0,
      writing,
      differing: differences(plain, model),
      left: leftIn(folder, checkpoints, temporary),
    };
    made.push(kill);
    onKill(kill);
  }
  clear();
  return made;
}

/** A line of progress after an iteration. */
const iterated = /^(?:iteration|epoch) (\d+)\//m;

/** The last iteration that stderr names; 0 without one. */
function lastTold(stderr: string): number {
  const numbers = [...stderr.matchAll(new RegExp(iterated, 'gm'))].map(([, number]) => Number(number));
  return Math.max(0, ...numbers);
}

/** Names that a run should not have left: temporary ones, and more checkpoints than two. */
function leftIn(folder: string, checkpoints: string, temporary: string): string[] {
  return [
    ...readdirSync(temporary),
    ...readdirSync(folder).filter(
      (name) => !['plain', 'model', 'checkpoints', 'temporary', 'ratings.csv'].includes(name),
    ),
    ...readdirSync(checkpoints).filter((name) => !/^checkpoint-\d{8}$/.test(name)),
    ...readdirSync(checkpoints).sort().slice(0, -2),
  ];
}

function requireDone(ended: Outcome): Outcome {
  if (ended.code !== 0) throw new Error(`train ended with ${ended.code}: ${ended.stderr}`);
  return ended;
}

async function firstCheckpoint(folder: string, ended: Promise<Outcome>): Promise<void> {
  const state = { over: false };
  void ended.then(() => (state.over = true));
  while (
    !state.over &&
    !(existsSync(folder) && readdirSync(folder).some((name) => name.startsWith('checkpoint-')))
  )
    await wait(LOOK);
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((done) => void setTimeout(done, milliseconds));
}

/** The files of two folders that are not the same bytes. */
function differences(left: string, right: string): string[] {
  const filesOf = (folder: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length));
  const names = new Set([...filesOf(left), ...filesOf(right)]);
  return [...names].filter((name) => {
    const [one, other] = [left, right].map((folder) => join(folder, name));
    return !existsSync(one) || !existsSync(other) || !readFileSync(one).equals(readFileSync(other));
  });
}
