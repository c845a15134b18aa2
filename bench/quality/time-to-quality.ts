/**
 * Seconds of training until a quality on held-out ratings is reached, compared with Python libraries: cmfrec,
 * Surprise's SVD and libmf by the RMSE of explicit ratings, implicit and cmfrec by ndcg@20 of implicit ones.
 *
 *     npm run build && FACTORFLOW_DATA=DIR node bench/quality/time-to-quality.ts [--sets ml-latest-small,...]
 *       [--libraries implicit,...] [--ranks 32,64] [--runs 3] [--json]
 *
 * The libraries are installed into build/rivals at the versions below. All train on the same files with the
 * same rank, 2 threads each, one after another. Settings: of each library's grid, by the validation part.
 * The goal of a pair of libraries is the worst of the best qualities of their runs on the test part, less
 * `slack`.
 * A time to the goal is of the fit alone; the library without a course by iteration is trained anew for
 * each number of iterations. "Whole" is a process that starts, reads Parquet, trains with the iterations that
 * reach the goal and writes the factors.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Cell } from '../../scripts/docs/results.ts';
import { describeMachine } from '../machine.ts';
import { newResult } from '../new-result.ts';
import { grids, type Kind, packages, type Settings } from './rival-settings.ts';

interface Point {
  readonly iterations: number;
  readonly seconds: number;
  readonly quality: number;
}
type Course = readonly Point[];

interface TrainReport {
  readonly iterations: readonly {
    readonly seconds: number;
    readonly testRmse?: number;
    readonly testMetrics?: Readonly<Record<string, number>>;
  }[];
  readonly seconds: { readonly train: number; readonly validation: number };
}

interface Problem {
  readonly set: string;
  readonly kind: Kind;
  readonly rank: number;
  readonly train: string;
  readonly validation: string;
  readonly test: string;
}

/** A library with the settings that reach its best quality on the validation part soonest. */
interface Tuned {
  readonly library: string;
  readonly settings: Settings;
  /** One for each run, on the test part. */
  readonly courses: Course[];
}

/** Numbers of iterations after which a quality counts. */
const iterations = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48];
const tuningIterations = [2, 4, 8, 16, 32];
/** By this part the goal is easier than the worse best: courses are flat at their end. */
const slack = { explicit: 0.002, implicit: 0.01 };
const kinds: Readonly<Record<string, Kind>> = {
  'ml-latest-small': 'explicit',
  'movielens20m-0.05': 'explicit',
  'citeulike-a': 'implicit',
  gowalla: 'implicit',
};

const root = resolve(import.meta.dirname, '../..');
const cli = join(root, 'dist/programs/cli/main.js');
const home = join(root, 'build/rivals');
const python = join(home, 'venv/bin/python');
const data = process.env.FACTORFLOW_DATA ?? '';
const { values } = parseArgs({
  options: {
    sets: { type: 'string', default: Object.keys(kinds).join(',') },
    libraries: { type: 'string' },
    ranks: { type: 'string', default: '32,64' },
    runs: { type: 'string', default: '3' },
    json: { type: 'boolean' },
  },
});

install();
const rows: Cell[][] = [];
for (const set of values.sets.split(','))
  for (const rank of values.ranks.split(',')) rows.push(...rowsOf(problemOf(set, Number(rank))));
print();

function install(): void {
  if (existsSync(join(home, 'installed'))) return;
  execFileSync('python3', ['-m', 'venv', join(home, 'venv')]);
  const pip = (args: readonly string[]) =>
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...args], { stdio: 'inherit' });
  pip(['setuptools==80.9.0', 'wheel==0.48.0', ...packages.slice(0, -1)]);
  pip(['--no-build-isolation', ...packages.slice(-1)]);
  execFileSync('touch', [join(home, 'installed')]);
}

/** Writes train, validation and test of a set once. */
function problemOf(set: string, rank: number): Problem {
  const folder = join(home, 'data', set.replaceAll(/[^a-z0-9]+/g, '-'));
  const parts = join(folder, 'parts');
  const split = (from: string, ...more: readonly string[]) => {
    if (!existsSync(parts)) factorflow(['split', from, '--output', parts, '--seed', '1', ...more]);
  };
  let test = join(parts, 'test');
  let validation = join(parts, 'test');
  if (set === 'ml-latest-small') {
    const ratings = join(data, 'ml-latest-small/ratings.parquet');
    split(ratings, '--test-fraction', '0.1', '--validation-fraction', '0.1');
    validation = join(parts, 'validation');
  } else if (set === 'citeulike-a') {
    split(join(data, 'cmn-citeulike-a/train.parquet'), '--test-leave-out', '1');
    test = join(data, 'cmn-citeulike-a/test.parquet');
  } else if (set === 'gowalla') {
    split(join(data, 'gowalla-lightgcn/train.parquet'), '--test-fraction', '0.1');
    test = join(data, 'gowalla-lightgcn/test.parquet');
  } else {
    const source = join(folder, 'generated');
    const preset = ['--preset', 'movielens20m', '--scale', '0.05', '--seed', '1'];
    if (!existsSync(source)) factorflow(['generate', ...preset, '--output', source]);
    split(join(source, 'train'), '--test-fraction', '0.1');
    test = join(source, 'test');
  }
  return { set, kind: kinds[set], rank, train: join(parts, 'train'), validation, test };
}

function rowsOf(problem: Problem): Cell[][] {
  const grid = grids[problem.kind];
  const wanted = values.libraries?.split(',') ?? Object.keys(grid);
  const libraries = Object.keys(grid).filter((name) => name === 'FactorFlow' || wanted.includes(name));
  const tuned = libraries.map((library) => tune(problem, library, grid[library]));
  for (let run = 0; run < Number(values.runs); run++)
    for (const { library, settings, courses } of tuned)
      courses.push(courseOf(problem, library, settings, problem.test, iterations));
  for (const { library, settings, courses } of tuned)
    console.error(JSON.stringify({ set: problem.set, rank: problem.rank, library, settings, courses }));
  const [own, ...rivals] = tuned;
  return rivals.map((rival) => rowOf(problem, own, rival));
}

function tune(problem: Problem, library: string, grid: readonly Settings[]): Tuned {
  const tried = grid.map((settings) => ({
    settings,
    course: courseOf(problem, library, settings, problem.validation, tuningIterations),
  }));
  const goal = goalOf(problem.kind, [tried.flatMap(({ course }) => course)]);
  const secondsOf = ({ course }: { course: Course }) =>
    reach(problem.kind, course, goal)?.seconds ?? Infinity;
  const [{ settings }] = [...tried].sort((left, right) => secondsOf(left) - secondsOf(right));
  for (const { settings: some, course } of tried)
    console.error(problem.set, problem.rank, library, JSON.stringify(some), best(problem.kind, course));
  return { library, settings, courses: [] };
}

function courseOf(
  problem: Problem,
  library: string,
  settings: Settings,
  test: string,
  asked: readonly number[],
): Course {
  if (library === 'FactorFlow') return ownCourse(problem, settings, test, asked);
  const output = rival(problem, library, settings, { test, iterations: asked });
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as Course;
}

function rival(
  { kind, rank, train }: Problem,
  library: string,
  settings: Settings,
  more: Readonly<Record<string, unknown>>,
): string {
  const { OPENBLAS_CORETYPE: _, OPENBLAS_L2_SIZE: __, ...env } = process.env;
  const request = { library, settings, rank, train, implicit: kind === 'implicit', ...more };
  return execFileSync(python, [join(import.meta.dirname, 'rivals.py'), JSON.stringify(request)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...env, OMP_NUM_THREADS: '2', OPENBLAS_NUM_THREADS: '1', MKL_NUM_THREADS: '1' },
  });
}

function ownCourse(problem: Problem, settings: Settings, test: string, asked: readonly number[]): Course {
  const most = String(asked.at(-1));
  const ranking = ['--early-stop', '8', '--early-stop-metric', 'ndcg@20', '--rank-users', 'all'];
  const more = problem.kind === 'implicit' ? ranking : [];
  const report = JSON.parse(
    factorflow([...trainArgs(problem, settings, most), '--test', test, ...more]),
  ) as TrainReport;
  const steps = report.iterations.reduce((sum, { seconds }) => sum + seconds, 0);
  let seconds = Math.max(0, report.seconds.train - report.seconds.validation - steps);
  return report.iterations.flatMap((step, at) => {
    seconds += step.seconds;
    const quality = step.testMetrics?.['ndcg@20'] ?? step.testRmse;
    return quality !== undefined && asked.includes(at + 1) ? [{ iterations: at + 1, seconds, quality }] : [];
  });
}

function trainArgs({ kind, rank, train }: Problem, settings: Settings, most: string): string[] {
  const options = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const implicit = kind === 'implicit' ? ['--implicit'] : [];
  const machine = ['--device', 'cpu', '--workers', '2', '--json', '--quiet'];
  const model = ['--model-dir', join(home, 'model'), '--force', '--rank', String(rank), '--max-iter', most];
  return ['train', train, ...model, ...machine, ...implicit, ...options];
}

function rowOf(problem: Problem, own: Tuned, other: Tuned): Cell[] {
  const { kind, set, rank } = problem;
  const goal = goalOf(kind, [...own.courses, ...other.courses]);
  const reached = [own, other].map(({ courses }) => courses.map((course) => reach(kind, course, goal)));
  const [mine, theirs] = reached.map((points) => median(points.map((point) => point?.seconds ?? Infinity)));
  const [few, many] = reached.map((points) => median(points.map((point) => point?.iterations ?? 1)));
  const whole = Array.from({ length: Number(values.runs) }, () => [
    secondsOf(() => factorflow(trainArgs(problem, own.settings, String(few)))),
    secondsOf(() => rival(problem, other.library, other.settings, { iterations: [many], save: `${home}/f` })),
  ]);
  const [wholeMine, wholeTheirs] = [0, 1].map((at) => median(whole.map((pair) => pair[at])));
  const qualities = [own, other].map(({ courses }) =>
    digits(median(courses.map((course) => best(kind, course))), 4),
  );
  const fits = [few, many, digits(mine), digits(theirs), digits(theirs / mine)];
  const process = [digits(wholeMine), digits(wholeTheirs), digits(wholeTheirs / wholeMine)];
  const settings = [own, other].map((tuned) => JSON.stringify(tuned.settings).replaceAll(/["{}]/g, ''));
  return [set, rank, other.library, ...qualities, digits(goal, 4), ...fits, ...process, ...settings];
}

/** The worst of the best qualities of the courses, made easier by the slack. */
function goalOf(kind: Kind, courses: readonly Course[]): number {
  const bests = courses.map((course) => best(kind, course));
  return kind === 'explicit'
    ? Math.max(...bests) * (1 + slack.explicit)
    : Math.min(...bests) * (1 - slack.implicit);
}

function best(kind: Kind, course: Course): number {
  const qualities = course.map(({ quality }) => quality);
  return kind === 'explicit' ? Math.min(...qualities) : Math.max(...qualities);
}

function reach(kind: Kind, course: Course, goal: number): Point | undefined {
  return course.find(({ quality }) => (kind === 'explicit' ? quality <= goal : quality >= goal));
}

function secondsOf(run: () => unknown): number {
  const start = performance.now();
  run();
  return (performance.now() - start) / 1000;
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((left, right) => left - right)[numbers.length >> 1];
}

function digits(value: number, after = 3): number {
  return after === 4 ? Number(value.toFixed(4)) : Number(value.toPrecision(3));
}

function factorflow(args: readonly string[]): string {
  const { FACTORFLOW_DATA: _, ...env } = process.env;
  return execFileSync(process.execPath, [cli, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 26,
    env,
  });
}

function print(): void {
  const names = ['FactorFlow', 'the library'];
  const columns = [
    ...['data', 'rank', 'library'].map((name) => ({ name })),
    ...names.map((name) => ({ name: `best of ${name}` })),
    { name: 'goal' },
    ...names.map((name) => ({ name: `iterations of ${name}` })),
    ...names.map((name) => ({ name: `fit by ${name}`, unit: 's' })),
    { name: 'fit, times as fast', unit: 'ratio' },
    ...names.map((name) => ({ name: `whole by ${name}`, unit: 's' })),
    { name: 'whole, times as fast', unit: 'ratio' },
    ...names.map((name) => ({ name: `settings of ${name}` })),
  ];
  if (values.json) {
    const commands = [`node bench/quality/time-to-quality.ts ${process.argv.slice(2).join(' ')}`];
    const title = 'Time to a quality, compared with Python libraries';
    console.log(newResult({ id: 'time-to-quality', title, commands, columns, rows }));
    return;
  }
  console.log(
    `${describeMachine()}, ${values.runs} runs\n\n| ${columns.map(({ name }) => name).join(' | ')} |`,
  );
  console.log(`|${'---|'.repeat(columns.length)}`);
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
}
