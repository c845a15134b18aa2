/**
 * Measures a case of bench/cases/; without a name it lists them.
 *
 *     npm run build && node bench/bench.ts [CASE [WORDS] [--OPTION VALUE] [--rounds N] [--builds DIST,DIST] [--json]]
 *
 * `--builds`: folders dist/ of builds, which a case that runs commands compares in turn. `--json` prints a
 * result in the form of bench/results/; the table then goes to stderr.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Case, runCase } from './harness.ts';

const folder = join(import.meta.dirname, 'cases');
const names = readdirSync(folder).map((file) => basename(file, '.ts'));

async function load(name: string): Promise<Case> {
  return ((await import(join(folder, `${name}.ts`))) as { readonly default: Case }).default;
}

async function list(): Promise<void> {
  for (const name of names) {
    const { about, words = '', options = {} } = await load(name);
    const flags = Object.entries(options).map(
      ([flag, value]) => ` [--${flag} ${value || flag.toUpperCase()}]`,
    );
    console.log(`${[name, words].join(' ').trim()}${flags.join('')}\n    ${about}\n`);
  }
}

/** The main file of each build, by the name of the build. */
function mainFiles(builds: string): Record<string, string> {
  const entries = builds.split(',').map((dist) => {
    const mains = ['programs/cli/main.js', 'cli/main.js'].map((main) => resolve(dist, main));
    const main = mains.find((file) => existsSync(file));
    if (main === undefined) throw new Error(`${dist} has no ${mains[0]}: run npm run build`);
    return [dist, main] as const;
  });
  return Object.fromEntries(entries);
}

async function main([name, ...rest]: readonly string[]): Promise<void> {
  if (name === undefined || name === '--help') return list();
  if (!names.includes(name)) throw new Error(`there is no case ${name}; there are ${names.join(', ')}`);
  const bench = await load(name);
  const own = Object.entries(bench.options ?? {}).map(([option, value]) => {
    return [option, { type: 'string', default: value }] as const;
  });
  const { values, positionals } = parseArgs({
    args: rest,
    allowPositionals: true,
    options: {
      ...Object.fromEntries(own),
      rounds: { type: 'string' },
      builds: { type: 'string', default: join(dirname(import.meta.dirname), 'dist') },
      json: { type: 'boolean', default: false },
    },
  });
  const { rounds, builds, json, ...options } = values;
  const scratch = mkdtempSync(join(tmpdir(), 'factorflow-bench-'));
  try {
    const given = { words: positionals, options, builds: mainFiles(builds), scratch };
    await runCase(bench, given, { name, rounds: rounds === undefined ? undefined : Number(rounds), json });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

await main(process.argv.slice(2));
// Drivers of a GPU keep threads.
process.exit();
