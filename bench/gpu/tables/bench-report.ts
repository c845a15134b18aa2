import { appendFileSync, writeFileSync } from 'node:fs';

/** The time limit of a run, and a file that receives the same lines as the console. */
export interface ReportLimits {
  readonly seconds: number;
  readonly output?: string;
}

/** Prints lines and Markdown tables of one bench run as they are completed, and tracks the remaining time. */
export class BenchReport {
  readonly #output: string | undefined;
  readonly #end: number;

  constructor({ seconds, output }: ReportLimits) {
    this.#output = output;
    this.#end = performance.now() + 1000 * seconds;
    if (output !== undefined) writeFileSync(output, '');
  }

  get timeIsUp(): boolean {
    return performance.now() >= this.#end;
  }

  line(text: string): void {
    console.log(text);
    if (this.#output !== undefined) appendFileSync(this.#output, `${text}\n`);
  }

  /** The head of a Markdown table; `paper` names the experiment that it repeats, with its result. */
  head(title: string, paper: string, columns: readonly string[]): void {
    this.line(`\n${title}\n${paper}\n\n${cells(columns)}\n|${'---|'.repeat(columns.length)}`);
  }

  row(values: readonly string[]): void {
    this.line(cells(values));
  }

  /** Prints tables one after the other with the time of each, and lists those that do not fit in the time. */
  async tables(all: readonly { readonly name: string; readonly run: () => Promise<void> }[]): Promise<void> {
    for (const [at, { name, run }] of all.entries()) {
      if (this.timeIsUp)
        return this.line(
          `\nTime was up before: ${all
            .slice(at)
            .map((left) => left.name)
            .join(', ')}`,
        );
      const begin = performance.now();
      await this.attempt(`table ${name}`, run);
      this.line(`\n(${name}: ${((performance.now() - begin) / 1000).toFixed(1)} s)`);
    }
  }

  /** The result of `work`; if it fails, prints a line with its error and returns undefined. */
  async attempt<T>(label: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.line(
        `(${label}: ${error instanceof Error ? error.message.split('\n')[0].slice(0, 200) : String(error)})`,
      );
      return undefined;
    }
  }
}

/**
 * The tables named by `--tables`. Ends the process with a message for an unknown table or a missing folder.
 */
export function chosenTables(
  folder: string | undefined,
  chosen: string,
  all: Readonly<Record<string, unknown>>,
): { readonly folder: string; readonly names: readonly string[] } {
  const names = chosen.split(',');
  const unknown = names.find((name) => all[name] === undefined);
  if (folder !== undefined && unknown === undefined) return { folder, names };
  console.error(
    unknown === undefined
      ? 'Name the folder of a data set'
      : `There is no table ${unknown}; there are ${Object.keys(all).join(', ')}`,
  );
  process.exit(2);
}

export function milliseconds(value: number): string {
  return value < 100 ? value.toFixed(2) : value < 1000 ? value.toFixed(1) : value.toFixed(0);
}

function cells(values: readonly string[]): string {
  return `| ${values.join(' | ')} |`;
}
