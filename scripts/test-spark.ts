/**
 * The tests of the plugin for Apache Spark: `npm run test:spark [-- WORDS]`. Builds the jar and the wheel,
 * installs each version of PySpark in its own environment below build/spark, and runs the Python tests in
 * test/spark: without WORDS, every test of the newest version and a short test of the oldest; with `1/2` or `2/2`
 * every second run of these; with `all`, every test of every version with every kind of session. Other WORDS select
 * runs by parts of their names.
 * `seeds` compares FactorFlow with Spark's own ALS at 20 seeds, in 10 minutes a version, and is not part of
 * `all`: `npm run test:spark -- seeds 4.3.0`. Java is the one on PATH. `all` also runs the tests of Spark's
 * interface with every Java from 21 on below /usr/lib/jvm, and in JAVA_HOME_21_X64 and JAVA_HOME_25_X64.
 * Without Java, Maven or Python it prints that and runs nothing; the same without network, unless everything
 * is installed already.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { environment, hasPython, notRun, runner } from './optional-tests.ts';
import { buildJars, buildWheel } from './spark-artifacts.ts';

const root = resolve(import.meta.dirname, '..');
const work = join(root, 'build/spark');
const tests = 'the tests of the plugin for Apache Spark';
const versions = ['3.5.9', '4.0.1', '4.3.0'] as const;
const oldest = versions[0];
const newest = versions[2];

interface TestRun {
  readonly version: (typeof versions)[number];
  readonly mode: 'classic' | 'connect';
  readonly master: string;
  readonly files: readonly string[];
  /** Its version and folder; default: the one on PATH. */
  readonly java?: { readonly version: number; readonly home: string };
}

/** A run in one line: its mode, its master (`local[2]` or a cluster's `executors,cores,MiB`), its files. */
function runOf(
  version: TestRun['version'],
  mode: TestRun['mode'],
  master: string,
  files: string | readonly string[],
): TestRun {
  const whole = master.startsWith('local') ? master : `local-cluster[${master}]`;
  return { version, mode, master: whole, files: typeof files === 'string' ? files.split(' ') : files };
}

/** Connect of Spark 3.5 has no interface for plugins. */
const connectVersions = versions.filter((version) => version !== oldest);
const parity = ['local[2]', '2,1,1024'].flatMap((master) => [
  ...versions.map((version) => runOf(version, 'classic', master, 'test_parity.py')),
  ...connectVersions.map((version) => runOf(version, 'connect', master, 'test_parity.py')),
]);
/** Cases of the tests of Spark's own ALS, and the examples in PySpark's documentation of it. */
const sparksOwn = 'test_als_cases.py test_als_lists.py test_doctest.py';
/** Tests that need one version only. */
const others: readonly TestRun[] = [
  runOf(newest, 'classic', 'local[2]', `test_data.py test_reach.py test_same_seed.py ${sparksOwn}`),
  runOf(newest, 'classic', 'local[1]', 'test_import.py'),
  runOf(newest, 'classic', '2,1,1024', 'test_ends.py'),
  runOf(newest, 'connect', 'local[2]', 'test_ends.py'),
  runOf(newest, 'classic', '3,1,2048', 'test_hosts.py test_host_failures.py'),
  runOf(newest, 'classic', '1,2,1024', 'test_settings.py'),
];
/** Parameters, SGD, summaries, recommendations and the cases of Spark itself on the other versions. */
const otherVersions = versions
  .filter((version) => version !== newest)
  .map((version) => runOf(version, 'classic', 'local[2]', `test_reach.py test_same_seed.py ${sparksOwn}`));
/** Spark's own cases through Connect. */
const ofConnect = connectVersions.map((version) => runOf(version, 'connect', 'local[2]', sparksOwn));
/** Executors with each later Java. Spark 3.5 knows none of them. */
const laterJavas = javas(21).map((java) => ({
  ...runOf(newest, 'classic', '2,1,1024', 'test_parity.py'),
  java,
}));
const runs: readonly TestRun[] = [...parity, ...others, ...otherVersions, ...ofConnect, ...laterJavas];

/** Chosen by the word `seeds` alone. */
const seeds = versions.map((version) => runOf(version, 'classic', 'local[2]', 'test_als_seeds.py -s'));

/**
 * All of Spark's interface in both kinds of session, one of them in one process and one on executors; and a
 * few tests of the client of Connect on executors. A classic session in one process has tests of its own.
 */
const fewOfConnect = 'fit_gives or program or saved or test_recommendations';
const shortParity: readonly TestRun[] = [
  runOf(newest, 'classic', '2,1,1024', 'test_parity.py'),
  runOf(newest, 'connect', 'local[2]', 'test_parity.py'),
  runOf(newest, 'connect', '2,1,1024', ['test_parity.py', '-k', fewOfConnect]),
];

/** One fit with the oldest version: its own jar is loaded, and trains. */
const smoke = runOf(oldest, 'classic', 'local[2]', ['test_import.py', '-k', 'defaults or series']);

const words = process.argv.slice(2).filter((word) => word !== 'all');
const nameOf = ({ version, mode, master, files, java }: TestRun) =>
  `${version} ${mode} ${master} ${files.join(' ')}${java ? ` java ${java.version}` : ''}`;
const [given] = process.argv.slice(2);
const isPart = /^\d\/\d$/.test(given ?? '');
const [part, parts] = isPart ? given.split('/').map(Number) : [1, 1];
const chosen =
  given === undefined || isPart
    ? [...[...shortParity, ...others].filter((_, at) => at % parts === part - 1), smoke]
    : (words.includes('seeds') ? seeds : runs).filter((run) =>
        words.every((word) => nameOf(run).includes(word)),
      );
if (chosen.length === 0)
  throw new Error(
    `no run has all of these words: ${words.join(' ')}. There are:\n${runs.map(nameOf).join('\n')}`,
  );

requireTools();
if (laterJavas.length === 0 && process.argv.includes('all'))
  console.log('no Java from 21 on is installed: nothing is tested with one');
const run = runner(tests);
const jars = buildJars(run);
const wheel = buildWheel(run, { jars, folder: join(work, 'wheel') });
for (const version of new Set(chosen.map((one) => one.version)))
  environment(
    run,
    join(work, `python-${version}`),
    join(root, `test/spark/requirements-${version}.txt`),
    wheel,
  );

const failed: string[] = [];
// A run of Spark uses half of two processors. Runs that end processes and measure time, and runs with many
// executors, run alone.
const isAlone = ({ files }: TestRun) => files.includes('test_ends.py') || files.includes('test_hosts.py');
// Servers of Connect all use one port, so they run one at a time.
const connect = chosen.filter((one) => !isAlone(one) && one.mode === 'connect');
const classic = chosen.filter((one) => !isAlone(one) && one.mode === 'classic');
await Promise.all([testAll(classic), testAll(connect).then(() => testAll(classic))]);
await testAll(chosen.filter(isAlone));
console.log(
  `\n${chosen.length - failed.length} of ${chosen.length} runs passed${failed.map((name) => `\n  failed: ${name}`).join('')}`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

async function testAll(runs: TestRun[]): Promise<void> {
  for (let one = runs.shift(); one !== undefined; one = runs.shift()) await test(one);
}

/** Prints a run's whole output once it has ended. */
async function test(one: TestRun): Promise<void> {
  const { version, mode, master, files, java } = one;
  const start = performance.now();
  const { status, said } = await ended(
    pythonOf(version),
    ['-m', 'pytest', '-q', '--no-header', '-p', 'no:cacheprovider', ...files],
    {
      FACTORFLOW_MODE: mode,
      FACTORFLOW_MASTER: master,
      FACTORFLOW_NODE: process.execPath,
      FACTORFLOW_MAIN: join(root, 'dist/programs/cli/main.js'),
      FACTORFLOW_JAR: version === oldest ? jars.spark3 : jars.spark4,
      PYSPARK_PYTHON: pythonOf(version),
      PYTHONDONTWRITEBYTECODE: '1',
      SPARK_HOME: undefined,
      ...(java && { JAVA_HOME: java.home, PATH: `${join(java.home, 'bin')}:${process.env.PATH ?? ''}` }),
      // For short-lived JVMs on few processors, which spend most of their time on compiling and on collector
      // threads. Code that is optimized less needs more stack.
      JAVA_TOOL_OPTIONS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m',
    },
  );
  const name = nameOf(one);
  console.log(
    `\n== ${name}\n${said}== ${status === 0 ? 'passed' : 'FAILED'} in ${((performance.now() - start) / 1000).toFixed(0)} s: ${name}`,
  );
  if (status !== 0) failed.push(name);
}

/** Runs a test program to its end, in parallel with others. */
function ended(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ readonly status: number | null; readonly said: string }> {
  const child = spawn(command, args, {
    cwd: join(root, 'test/spark'),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (said += String(text)));
  return new Promise((done, fail) => child.on('error', fail).on('close', (status) => done({ status, said })));
}

/** If a tool is missing, ends the process with a message and without failure. */
function requireTools(): void {
  const java = /version "(\d+)/.exec(spawnSync('java', ['-version'], { encoding: 'utf8' }).stderr ?? '')?.[1];
  const missing = [
    ...(java === undefined || Number(java) < 17
      ? [`Java 17 or newer (${java === undefined ? 'there is none' : `this is ${java}`})`]
      : []),
    ...(spawnSync('mvn', ['-version']).status === 0 ? [] : ['Maven']),
    ...(hasPython([3, 9]) ? [] : ['Python 3.9 or newer with venv']),
  ];
  if (missing.length > 0) notRun(tests, `there is no ${missing.join(', no ')}`);
}

/** The versions of Java from `least` on that are installed, each once. */
function javas(least: number): { readonly version: number; readonly home: string }[] {
  const homes = [
    ...[process.env.JAVA_HOME_21_X64, process.env.JAVA_HOME_25_X64].filter((home) => home !== undefined),
    ...globSync('/usr/lib/jvm/*'),
  ];
  const found = new Map(
    homes.flatMap((home) => {
      const release = join(home, 'release');
      const text = existsSync(release) ? readFileSync(release, 'utf8') : '';
      const version = Number(/^JAVA_VERSION="(\d+)/m.exec(text)?.[1]);
      return version >= least ? [[version, home] as const] : [];
    }),
  );
  return Array.from(found, ([version, home]) => ({ version, home }));
}

function pythonOf(version: string): string {
  return join(work, `python-${version}/bin/python`);
}
