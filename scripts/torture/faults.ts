import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { recoverInput } from '../../connectors/output/temporaries.ts';
import type { MakeAttack, Surroundings } from './attack.ts';
import { type Ended, Replacement, replacements, runCommand, wrongEnd } from './commands.ts';
import { buildShim, calls, type ChangedCall, type Fault, faultyEnv } from './faults/shim.ts';
import { judge } from './kills.ts';
import { baseBytes } from '../../operators/planner/memory-budget.ts';

const FAULTS = 4;
const errors = ['EIO', 'ENOSPC', 'EINTR', 'EAGAIN', 'EMFILE'];

/**
 * Lets calls of the file system fail, do less than was asked for, or take long: a command succeeds with the
 * bits of an undisturbed run, or ends with an error that names the file and leaves the old output. Short
 * reads and writes, and slow calls, never make it fail.
 */
export const faults: MakeAttack = (around) => {
  const { folder, random, count, find } = around;
  const [below, log] = [join(folder, 'targets'), join(folder, 'calls.log')];
  const numbers = new Map<Replacement, Numbers>();
  let shim = '';
  let targets: readonly Replacement[] = [];

  async function run(line: readonly string[], fault: Fault): Promise<Outcome> {
    const { env, read } = faultyEnv(shim, below, fault, log);
    const ended = await runCommand(line, { env });
    return { ended, changed: read() };
  }

  async function oneFault(target: Replacement, found: Numbers): Promise<void> {
    target.reset();
    const fault = anyFault(around, found);
    const { ended, changed } = await run(target.line, fault);
    const how = `with ${fault.call}:${fault.first}:${fault.times}:${fault.action}`;
    count(changed.length === 0 ? 'not reached' : ended.code === 0 ? 'passed' : 'refused');
    const wrong = wrongEnd(ended, {
      codes: [2, 3, 4],
      names: namesOf(target, changed),
      mustSucceed: changed.length === 0 || !errors.includes(fault.action),
    });
    if (wrong !== undefined) find(`${target.name} ${how}: ${wrong} (${pathsOf(changed)})`);
    await recoverInput(target.target);
    judge(target, ended, how, around);
  }

  return {
    name: 'failing calls',
    prepare: async () => {
      const built = buildShim();
      if ('reason' in built) return built.reason;
      shim = built.file;
      targets = [...(await replacements(below)), ...(await longRuns(below))];
      const { changed } = await run(
        ['convert', join(below, 'data.parquet'), join(below, 'seen.csv'), '--quiet'],
        unchanged,
      );
      const found = numbersOf(changed);
      const unseen = ['open', 'read', 'write', 'rename', 'close'].filter((call) => !found.has(call));
      return unseen.length === 0 ? undefined : `calls of this Node are not seen: ${unseen.join(', ')}`;
    },
    round: async () => {
      const target = targets[random(targets.length)];
      const found = numbers.get(target) ?? (await learn(target, (fault) => run(target.line, fault)));
      if (typeof found === 'string') return find(found);
      numbers.set(target, found);
      for (let left = FAULTS; left > 0; left--) await oneFault(target, found);
      clearUp(target, await runCommand(target.line), below, find);
    },
    close: async () => rmSync(shim, { force: true }),
  };
};

interface Outcome {
  readonly ended: Ended;
  readonly changed: readonly ChangedCall[];
}

/** Calls of an undisturbed run, by their kind and "any". */
type Numbers = ReadonlyMap<string, number>;

const unchanged: Fault = { call: 'any', first: 1, times: 0, action: 'none' };

/** Learns both outputs of a command and the number of its calls. Gives what is wrong. */
async function learn(
  target: Replacement,
  run: (fault: Fault) => Promise<Outcome>,
): Promise<Numbers | string> {
  const wrong = await target.learn();
  if (wrong !== undefined) return wrong;
  target.reset();
  const { ended, changed } = await run(unchanged);
  if (ended.code !== 0 || target.content !== 'new')
    return `${target.name}: the shim alone changes it: ${ended.code}, ${ended.stderr}`;
  return numbersOf(changed);
}

function numbersOf(changed: readonly ChangedCall[]): Numbers {
  const found = new Map<string, number>([['any', changed.length]]);
  for (const { call } of changed) found.set(call, (found.get(call) ?? 0) + 1);
  return found;
}

/** The next run gives the output, and clears up. */
function clearUp(target: Replacement, { code, stderr }: Ended, below: string, find: Surroundings['find']) {
  if (code !== 0) find(`${target.name}: the next run fails: ${stderr}`);
  if (target.content !== 'new') find(`${target.name}: the next run leaves the output ${target.content}`);
  const left = leftBelow(below);
  if (left.length > 0) find(`${target.name}: the next run leaves ${left.join(', ')}`);
}

/** A change of some calls, of which an undisturbed run has `numbers`. */
function anyFault({ random }: Surroundings, numbers: Numbers): Fault {
  const kinds = [...calls.filter((call) => numbers.has(call)), 'any' as const];
  const call = kinds[random(kinds.length)];
  const number = numbers.get(call) ?? 1;
  const first = 1 + random(number);
  const kind = random(7);
  if (kind === 0) return { call: 'any', first: 1, times: 0, action: `short-${random(100)}` };
  if (kind === 1) return { call, first, times: 1, action: `short-${random(100)}` };
  if (kind === 2) return { call, first, times: 1 + random(5), action: `delay-${random(400)}` };
  const action = errors[random(errors.length)];
  // Node repeats a call for EINTR, without end where it has no end.
  const times = action !== 'EINTR' && random(4) === 0 ? 0 : 1;
  return { call, first, times, action };
}

/** Paths that an error has to name: the output for a call near it, else the argument with the input. */
function namesOf(target: Replacement, changed: readonly ChangedCall[]): string[] {
  const near = dirname(target.target);
  return changed.flatMap(({ path }) => {
    if (path.startsWith(near)) return [target.target];
    const given = target.line.filter((word) => word.startsWith('/') && path.startsWith(word));
    return given.length > 0 ? given : [path];
  });
}

function pathsOf(changed: readonly ChangedCall[]): string {
  const first = changed.slice(0, 3).map(({ call, path }) => `${call} ${path}`);
  return changed.length === 0 ? 'no call was changed' : first.join(', ');
}

/** Unfinished files anywhere below a folder. */
function leftBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(tmp|old)-[^/]*$/.test(name),
  );
}

/** Ratings that loading keeps in files at the smallest memory budget. */
const SPILLED = 400_000;

/**
 * Commands that read and write more than an input and an output: checkpoints, spilled ratings, models to go
 * on from, inputs of each format. `folder` has data.parquet, few.csv and the model of `replacements`.
 */
async function longRuns(folder: string): Promise<Replacement[]> {
  const at = (name: string) => join(folder, name);
  const [data, few, checkpoints] = [at('data.parquet'), at('few.csv'), at('checkpoints')];
  const small = ['--rank', '4', '--device', 'cpu', '--workers', '2'];
  const often = ['--checkpoint-dir', checkpoints, '--checkpoint-interval', '1'];
  const made = [
    ['train', data, ...small, '--max-iter', '2', ...often, '--model-dir', at('begun')],
    ['convert', few, at('few.arrow')],
    ['convert', few, at('few.ndjson')],
    ['convert', few, at('few.csv.gz')],
  ];
  for (const line of made) {
    const { code, stderr } = await runCommand([...line, '--quiet']);
    if (code !== 0) throw new Error(stderr);
  }
  cpSync(checkpoints, at('checkpoints-kept'), { recursive: true });
  const spilled = ['--memory-budget', `${baseBytes(1) + 18 * SPILLED}`, '--spill-dir', at('spill')];
  mkdirSync(at('spill'));
  writeFileSync(at('many.csv'), manyRatings());
  const one = ['--rank', '2', '--device', 'cpu', '--workers', '1', '--no-biases'];
  return [
    new Replacement(
      folder,
      'resumed',
      ['train', data, ...small, ...often, '--resume', '--max-iter', '4', '--model-dir'],
      ['--max-iter', '3'],
      { from: at('checkpoints-kept'), to: checkpoints },
    ),
    new Replacement(
      folder,
      'updated',
      ['train', few, '--init-model', at('model'), '--device', 'cpu', '--workers', '2', '--model-dir'],
      ['--max-iter', '1'],
    ),
    new Replacement(
      folder,
      'spilled',
      ['train', at('many.csv'), ...one, ...spilled, '--max-iter', '2', '--model-dir'],
      ['--seed', '7'],
    ),
    new Replacement(folder, 'of-arrow.csv', ['convert', at('few.arrow')], ['--to', 'tsv']),
    new Replacement(folder, 'of-ndjson.csv', ['convert', at('few.ndjson')], ['--to', 'tsv']),
    new Replacement(folder, 'of-gzip.csv', ['convert', at('few.csv.gz')], ['--to', 'tsv']),
    new Replacement(folder, 'rows.arrow', ['convert', few], ['--codec', 'zstd']),
  ];
}

function manyRatings(): string {
  const lines = Array.from(
    { length: SPILLED },
    (_, k) => `${(k * 7919) % 700},${Math.floor(k / 700)},${(k % 5) + 1}`,
  );
  return `user,item,rating\n${lines.join('\n')}\n`;
}
