import { appendFileSync, writeFileSync } from 'node:fs';

/** What a run may spend, and the file that its lines go to beside the console. */
export interface ReportLimits {
  readonly seconds: number;
  readonly output?: string;
}

/** Lines and tables in Markdown of one run of a bench, as they are ready, and the time that is left for more. */
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

  /** The head of a table in Markdown; `paper` says whose experiment it repeats and what came out. */
  head(title: string, paper: string, columns: readonly string[]): void {
    this.line(`\n${title}\n${paper}\n\n${cells(columns)}\n|${'---|'.repeat(columns.length)}`);
  }

  row(values: readonly string[]): void {
    this.line(cells(values));
  }

  /** What `work` gives, or undefined after a line with its error. */
  async attempt<T>(label: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.line(`(${label}: ${error instanceof Error ? error.message.split('\n')[0].slice(0, 200) : String(error)})`);
      return undefined;
    }
  }
}

export function milliseconds(value: number): string {
  return value < 100 ? value.toFixed(2) : value < 1000 ? value.toFixed(1) : value.toFixed(0);
}

function cells(values: readonly string[]): string {
  return `| ${values.join(' | ')} |`;
}
