import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { recoverInput } from '../../connectors/output/temporaries.ts';
import { baseBytes } from '../../operators/planner/memory-budget.ts';
import type { Surroundings } from './attack.ts';
import { type Ended, make, ratings, runCommand } from './commands.ts';

/**
 * A command that replaces an output: its name; its line without the output, in which @ is the folder of the
 * inputs; and flags that give the old output, each added or in place of the same flag. `restored`: a folder
 * that the command changes, which is copied anew before each run.
 */
type Line = readonly [name: string, line: string, first: string, restored?: string];

const small = '--rank 4 --device cpu --workers 2';
const often = '--checkpoint-dir @checkpoints --checkpoint-interval 1';
/** Ratings that loading keeps in files at the smallest memory budget. */
const SPILLED = 400_000;
const spill = `--memory-budget ${baseBytes(1) + 18 * SPILLED} --spill-dir @spill`;

/** Command lines of every kind that writes, and of those that make their inputs. */
const simple = {
  inputs: [
    'convert @ratings.parquet @few.csv',
    `train @ratings.parquet ${small} --max-iter 1 --model-dir @model`,
    'convert @ratings.parquet @data.parquet',
  ],
  lines: [
    ['text.csv', 'convert @data.parquet', '--to tsv'],
    ['rows.ndjson.gz', 'convert @few.csv', '--to csv'],
    ['table.parquet', 'convert @few.csv', '--codec gzip'],
    ['parts', 'convert @few.csv', '--codec snappy'],
    ['lists', 'recommend @model --n 3 --output', '--codec gzip'],
    ['generated', 'generate --preset movielens20m --scale 0.002 --output', '--seed 7'],
    ['split', 'split @data.parquet --test-fraction 0.1 --output', '--seed 7'],
    ['factors', 'export @model --output', '--precision float16'],
    ['trained', `train @data.parquet ${small} --max-iter 2 --model-dir`, '--seed 7'],
  ] satisfies Line[],
};

/**
 * Command lines that read and write more than an input and an output: checkpoints, spilled ratings, models to
 * go on from, inputs of each format.
 */
const long = {
  inputs: [
    `train @data.parquet ${small} --max-iter 2 ${often} --model-dir @begun`,
    'convert @few.csv @few.arrow',
    'convert @few.csv @few.ndjson',
    'convert @few.csv @few.csv.gz',
  ],
  lines: [
    [
      'resumed',
      `train @data.parquet ${small} ${often} --resume --max-iter 4 --model-dir`,
      '--max-iter 3',
      'checkpoints',
    ],
    ['updated', 'train @few.csv --init-model @model --device cpu --workers 2 --model-dir', '--max-iter 1'],
    [
      'spilled',
      `train @many.csv --rank 2 --device cpu --workers 1 --no-biases ${spill} --max-iter 2 --model-dir`,
      '--seed 7',
    ],
    ['of-arrow.csv', 'convert @few.arrow', '--to tsv'],
    ['of-ndjson.csv', 'convert @few.ndjson', '--to tsv'],
    ['of-gzip.csv', 'convert @few.csv.gz', '--to tsv'],
    ['rows.arrow', 'convert @few.csv', '--codec zstd'],
  ] satisfies Line[],
};

/** Commands that replace outputs below a folder: of every kind that writes, and on demand the long ones. */
export async function replacements(folder: string, withLong = false): Promise<readonly Replacement[]> {
  mkdirSync(join(folder, 'spill'), { recursive: true });
  copyFileSync(ratings, join(folder, 'ratings.parquet'));
  writeFileSync(join(folder, 'many.csv'), manyRatings());
  const sets = withLong ? [simple, long] : [simple];
  await make(...sets.flatMap(({ inputs }) => inputs.map((line) => wordsOf(line, folder))));
  return sets.flatMap(({ lines }) => lines.map((line) => new Replacement(folder, line)));
}

function wordsOf(line: string, folder: string): readonly string[] {
  return line.split(' ').map((word) => (word.startsWith('@') ? join(folder, word.slice(1)) : word));
}

function manyRatings(): string {
  const lines = Array.from(
    { length: SPILLED },
    (_, k) => `${(k * 7919) % 700},${Math.floor(k / 700)},${(k % 5) + 1}`,
  );
  return `user,item,rating\n${lines.join('\n')}\n`;
}

/** A command that replaces an output, and the two contents that the output may have. */
export class Replacement {
  readonly name: string;
  readonly folder: string;
  readonly target: string;
  /** The command line that writes the new output. */
  readonly line: readonly string[];
  readonly #oldLine: readonly string[];
  readonly #kept: string;
  readonly #restored: string | undefined;
  #digests: readonly [old: string, fresh: string] | undefined;
  /** The duration of an undisturbed run. */
  milliseconds = 0;

  constructor(inputs: string, [name, line, first, restored]: Line) {
    const file = name.includes('.') ? name : 'output';
    [this.name, this.folder] = [name, join(inputs, name)];
    [this.target, this.#kept] = [join(this.folder, file), join(inputs, `${name}-kept`, file)];
    const [words, flags] = [wordsOf(line, inputs), first.split(' ')];
    const isReplaced = (word: string | undefined) => word?.startsWith('--') && flags.includes(word);
    const others = words.filter((word, at) => !isReplaced(word) && !isReplaced(words[at - 1]));
    this.line = [...words, this.target, '--force', '--quiet'];
    this.#oldLine = [...others, this.target, '--force', '--quiet', ...flags];
    if (restored === undefined) return;
    this.#restored = join(inputs, restored);
    cpSync(this.#restored, `${this.#restored}-kept`, { recursive: true });
  }

  /** Learns both contents, once. Gives what is wrong. */
  async learn(): Promise<string | undefined> {
    if (this.#digests !== undefined) return undefined;
    mkdirSync(this.folder, { recursive: true });
    rmSync(this.#kept, { recursive: true, force: true });
    const digests: string[] = [];
    for (const line of [this.#oldLine, this.line]) {
      this.#restore();
      const { code, stderr, milliseconds } = await runCommand(line);
      if (code !== 0) return `${this.name}: ${stderr}`;
      if (digests.length === 0) cpSync(this.target, this.#kept, { recursive: true });
      digests.push(digestOf(this.target));
      this.milliseconds = milliseconds;
    }
    if (digests[0] === digests[1]) return `${this.name}: the old and the new output are the same`;
    this.#digests = [digests[0], digests[1]];
    return undefined;
  }

  /** Puts the old output into its place. */
  reset(): void {
    this.#restore();
    rmSync(this.target, { recursive: true, force: true });
    cpSync(this.#kept, this.target, { recursive: true });
  }

  #restore(): void {
    if (this.#restored === undefined) return;
    rmSync(this.#restored, { recursive: true, force: true });
    cpSync(`${this.#restored}-kept`, this.#restored, { recursive: true });
  }

  /** 'old', 'new', 'missing', or 'other' for what must not be. */
  get content(): 'old' | 'new' | 'missing' | 'other' {
    if (!existsSync(this.target)) return 'missing';
    const digest = digestOf(this.target);
    return digest === this.#digests?.[0] ? 'old' : digest === this.#digests?.[1] ? 'new' : 'other';
  }

  /** Names beside the output. */
  get leftovers(): string[] {
    return readdirSync(this.folder).filter((name) => name.startsWith('.'));
  }

  /**
   * Reports an output that is neither the old one nor the new one, or not the new one although the command says
   * that it is done. `moved`: the old output may have been moved aside, and is put back first.
   */
  async judge(
    { code, signal }: Ended,
    how: string,
    { find, count }: Surroundings,
    moved = true,
  ): Promise<void> {
    if (moved) await recoverInput(this.target);
    const { content } = this;
    count(`output ${content}`);
    if (content === 'missing' || content === 'other' || (code === 0 && signal === null && content !== 'new'))
      find(`${this.name}: ended ${how} with code ${code}, the output is ${content}`);
  }

  /** The next run gives the new output and clears up, anywhere below `below`. */
  async clearUp({ find }: Surroundings, below = this.folder): Promise<void> {
    const { code, stderr } = await runCommand(this.line);
    const left = readdirSync(below, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(tmp|old)-[^/]*$/.test(name),
    );
    if (code !== 0) find(`${this.name}: the next run fails: ${stderr}`);
    if (this.content !== 'new') find(`${this.name}: the next run leaves the output ${this.content}`);
    const all = [...new Set([...left, ...this.leftovers])];
    if (all.length > 0) find(`${this.name}: the next run leaves ${all.join(', ')}`);
  }
}

/** A digest of all names and bytes below a path. */
export function digestOf(path: string): string {
  const hash = createHash('sha256');
  const files = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .sort()
    : [path];
  for (const file of files) {
    hash.update(`${relative(path, file)}\0`);
    hash.update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}
