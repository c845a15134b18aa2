import { appendFile, mkdir, open, rm, truncate } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorCode, fileProblem } from '../../connectors/files/file-problem.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';
import type { JsonObject, Trial } from '../../index.ts';

/**
 * The trials of a search as lines of JSON: first the search itself, then each completed trial, which is on
 * disk before the next starts. So an interrupted search can be resumed.
 */
export class TrialsFile {
  readonly path: string;
  /** Trials of an earlier run. */
  readonly done: readonly Trial[];
  /** Trials that this run has added. */
  written = 0;

  private constructor(path: string, done: readonly Trial[]) {
    this.path = path;
    this.done = done;
  }

  /**
   * Opens the file of a search. With `resume` it continues an earlier run of the same search; otherwise
   * `force` starts again.
   */
  static async open(
    path: string,
    search: JsonObject,
    { resume, force }: { readonly resume: boolean; readonly force: boolean },
  ): Promise<TrialsFile> {
    const earlier = textOf(path);
    if (earlier !== undefined && !isSearch(earlier))
      throw new UsageError(`${path} is not a file of trials, and is not replaced`, {
        advice: 'Name another file with --trials-file',
      });
    const head = JSON.stringify(search);
    if (earlier !== undefined && resume) {
      const done = trialsOf(earlier, head, path);
      // Removes a last line that a kill truncated, so that the next one starts on a new line.
      await truncate(path, Buffer.byteLength(earlier.slice(0, earlier.lastIndexOf('\n') + 1)));
      return new TrialsFile(
        path,
        done.filter(({ failure }) => failure === undefined),
      );
    }
    if (earlier !== undefined && !force)
      throw new UsageError(`${path} has the trials of an earlier search`, {
        advice: 'Continue it with --resume, or begin again with --force',
      });
    try {
      await mkdir(dirname(resolve(path)), { recursive: true });
      await writeAll(path, `${head}\n`);
    } catch (error) {
      throw fileProblem(error, 'write', path);
    }
    return new TrialsFile(path, []);
  }

  async add(trial: Trial): Promise<void> {
    try {
      await appendFile(this.path, `${JSON.stringify(trial)}\n`, { flush: true });
      this.written++;
    } catch (error) {
      throw fileProblem(error, 'write', this.path);
    }
  }

  async remove(): Promise<void> {
    await rm(this.path, { force: true });
  }
}

/** Most bytes of a file of trials: a trial takes less than a thousand. */
const MOST_BYTES = 2 ** 28;

/** The text of the file; undefined if there is no file. */
function textOf(path: string): string | undefined {
  try {
    return Buffer.from(readRegular(path, MOST_BYTES)).toString();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (!(error instanceof DataError)) throw fileProblem(error, 'read', path);
    throw new UsageError(error.summary, { file: path, advice: 'Name another file with --trials-file' });
  }
}

/** True for a text whose first line describes a search. */
function isSearch(text: string): boolean {
  const head = parsed(text.split('\n', 1)[0]);
  return typeof head === 'object' && head !== null && 'space' in head && 'metric' in head;
}

async function writeAll(path: string, text: string): Promise<void> {
  const handle = await open(path, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The trials in the file, without a last line that a kill truncated. */
function trialsOf(text: string, head: string, path: string): Trial[] {
  const [first = '', ...lines] = text.split('\n');
  if (first !== head)
    throw new UsageError(`${path} has the trials of another search: ${difference(first, head)}`, {
      advice: 'Give the same flags and ratings, or begin again with --force and without --resume',
    });
  const whole = lines.slice(0, -1);
  return whole.map((line, at) => {
    const trial = parsed(line);
    if (typeof trial !== 'object' || trial === null || typeof (trial as Partial<Trial>).params !== 'object')
      throw new DataError(`line ${at + 2} is not a trial`, {
        phase: 'tune',
        file: path,
        advice: 'Begin again with --force and without --resume',
      });
    const { value } = trial as { readonly value?: unknown };
    // JSON has no NaN.
    return { ...(trial as Trial), value: typeof value === 'number' ? value : Number.NaN };
  });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** The first name whose values differ. */
function difference(first: string, head: string): string {
  const [own, other] = [parsed(head), parsed(first)] as (Readonly<Record<string, unknown>> | undefined)[];
  if (typeof other !== 'object' || other === null || own === undefined)
    return 'its first line does not describe a search';
  const name = [...new Set([...Object.keys(own), ...Object.keys(other)])].find(
    (key) => JSON.stringify(own[key]) !== JSON.stringify(other[key]),
  );
  return name === undefined
    ? 'its first line differs'
    : `${name} is ${JSON.stringify(other[name])} there, and ${JSON.stringify(own[name])} here`;
}
