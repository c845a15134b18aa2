import { DuckDBInstance } from '@duckdb/node-api';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, inject } from 'vitest';
import { finish, startRun } from '../../cli/run-cli.ts';
import { type Outcome, type ProcessOptions, type Started, startProcess } from '../support/start-process.ts';

const root = resolve(import.meta.dirname, '../..');
export const program = join(root, 'dist/programs/cli/main.js');

/** 100,000 real ratings {user, item, rating, timestamp}. */
export const ratings = join(root, 'examples/data/movietweetings-100k/ratings.parquet');

/** Enough to have a model, and fast. */
export const quick = ['--rank', '4', '--max-iter', '2'];

/** Starts the built command. It must have been built: `npm run build`. */
export function start(
  args: readonly string[],
  options: ProcessOptions & {
    readonly nodeArgs?: readonly string[];
    /** A command that runs the program with its arguments, such as a shell with a limit. */
    readonly within?: readonly string[];
  } = {},
): Started {
  if (!existsSync(program)) throw new Error(`${program} is missing: run npm run build first`);
  const { within = [], nodeArgs = [] } = options;
  return startProcess([...within, process.execPath, ...nodeArgs, program, ...args], options);
}

type Inserted = string | number | readonly string[];

/** The words of a text in which \0n\0 stands for the n-th value. */
const wordsOf = (text: string, values: readonly Inserted[]): string[] =>
  text
    .trim()
    .split(/\s+/)
    .flatMap((word) => {
      const whole = /^\0(\d+)\0$/.exec(word);
      const value = whole === null ? undefined : values[Number(whole[1])];
      if (Array.isArray(value)) return value as readonly string[];
      return word.replaceAll(/\0(\d+)\0/g, (_, at: string) => String(values[Number(at)]));
    });

const marked = (texts: readonly string[]) => texts.reduce((line, text, at) => `${line}\0${at - 1}\0${text}`);

/**
 * The words of a command line, split at spaces. An inserted text stays one word, or a part of one, whatever it
 * contains; an inserted list gives each of its texts as a word.
 */
export function argv(texts: TemplateStringsArray, ...values: readonly Inserted[]): string[] {
  return wordsOf(marked(texts), values);
}

/** A table of command lines and patterns of their errors: lines of the form `words | pattern`. */
export function refusals(
  { raw }: TemplateStringsArray,
  ...values: readonly Inserted[]
): [words: string[], pattern: RegExp][] {
  const lines = marked(raw).trim().split('\n');
  return lines.map((line) => {
    const [, words, pattern] = /^(.*?) \| (.+)$/.exec(line) ?? [];
    if (pattern === undefined) throw new Error(`not of the form "words | pattern": ${line}`);
    return [wordsOf(words, values), new RegExp(pattern)];
  });
}

/** Commands with the flag --workers, whose threads take longer to start than to work on these small inputs. */
const brief = /^(convert|evaluate|explain|fold-in|index|predict|recommend|similar|split|train|tune)$/;

/**
 * Runs a command line inside this process, which takes less time than `start`: the same outcome except for
 * signals, crashes, pipes, and rows on stdout (output "-"). Commands have one thread, unless --workers is
 * given.
 */
export async function factorflow(...line: readonly string[]): Promise<Outcome> {
  const [command, ...flags] = line;
  const isBrief = brief.test(command) && !flags.includes('--workers');
  const args = isBrief ? [command, '--workers', '1', ...flags] : line;
  let [stdout, stderr] = ['', ''];
  const terminal = {
    print: async (text: string) => void (stdout += `${text}\n`),
    say: (line: string) => void (stderr += `${line}\n`),
  };
  const code = await finish(startRun(args, terminal), new AbortController());
  return { code, signal: null, stdout, stderr };
}

/** Runs a command with --json and returns the object, after checking that stdout has only that one line. */
export async function json(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, signal, stdout, stderr } = await factorflow(...args, '--json');
  expect(stderr).not.toMatch(/factorflow: (?!warning)/);
  expect({ code, signal, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, signal: null, stderr: '' });
  return objectOf(stdout);
}

export function objectOf(stdout: string): Record<string, unknown> {
  expect(stdout).toMatch(/^\{.*\}\n$/);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** Expects a command line to fail. */
export async function fails(code: number, pattern: RegExp, ...args: readonly string[]): Promise<void> {
  expectFailure(await factorflow(...args, '--quiet'), code, pattern);
}

/** Checks that a failure gives advice: exit code, one line on stderr, no stack, nothing on stdout. */
export function expectFailure({ code: ended, stdout, stderr }: Outcome, code: number, pattern: RegExp): void {
  expect(stderr).toMatch(pattern);
  expect(stderr).toMatch(/^factorflow: [^\n]+\n$/);
  expect(stdout).toBe('');
  expect(ended).toBe(code);
}

/** What is in the folder of a model of explicit ratings, in order. */
export const modelFiles = 'itemCounts itemFactors itemMeans metadata userFactors userMeans'.split(' ');

/** A model of the example's ratings, trained once for all files of a test run. Read only. */
export async function trainedModel(): Promise<string> {
  const model = join(inject('runFolder'), 'model');
  // Test files that run at the same time may both train the model. The first to end stores it, and the other
  // uses it.
  if (!existsSync(model))
    await factorflow('train', ratings, ...quick, '--device', 'cpu', '--model-dir', model, '--quiet');
  expect(readdirSync(model).sort()).toEqual(modelFiles);
  return model;
}

/** Unfinished outputs in a folder. */
export function temporariesIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith('.'));
}

/** Writes the rows of a query as Parquet, by DuckDB. */
export async function writeParquet(file: string, query: string, options = ''): Promise<string> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  await connection.run(`COPY (${query}) TO '${file}' (FORMAT parquet${options})`);
  connection.closeSync();
  instance.closeSync();
  return file;
}

/** 2,000 of the example's ratings, written once for all files of a test run. Read only. */
export async function fewRatings(): Promise<string> {
  const file = join(inject('runFolder'), `few-${process.pid}.parquet`);
  return existsSync(file) ? file : writeParquet(file, `SELECT * FROM '${ratings}' LIMIT 2000`);
}

/** Runs the built command with bytes on stdin; undefined: without stdin. */
export function piped(
  input: Uint8Array | undefined,
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly stdout: Buffer; readonly stderr: string }> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += String(chunk)));
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  return new Promise(
    (resolve) => void child.on('close', (code) => resolve({ code, stdout: Buffer.concat(stdout), stderr })),
  );
}
