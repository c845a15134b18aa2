import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Case } from '../harness.ts';
import { engineOf } from '../processes.ts';

const module = fileURLToPath(new URL('../engines/ratings.ts', import.meta.url));
/** Files that DuckDB reads as well. */
const known = /\.(csv|csv\.gz|csv\.zst|parquet|ndjson)$/;

const formats: Case = {
  about:
    'Rows of user, item, rating and timestamp written and read per second on one core, by format, with ' +
    'the peak of the process. DuckDB on one thread sums the columns of the same file. Writing includes ' +
    'making the rows, which takes the time of `generate`.',
  words: '[ROWS = 2000000]',
  options: {
    formats: 'csv,dat,csv.gz,csv.zst,csv.lz4,ndjson,ndjson.lz4,parquet,arrow,arrows',
  },
  columns: { seconds: 's', rows: 'M/s', processor: 's', peak: 'MiB', 'a row': 'bytes' },
  rounds: 5,
  warmUp: 1,
  async *rows(given) {
    const rows = given.words[0] ?? '2000000';
    for (const [at, format] of given.options.formats.split(',').entries()) {
      const file = join(given.scratch, `ratings.${format}`);
      const run = async (engine: string, work: string) => {
        const process = engines[engine];
        const { seconds, processor, peak } = await process.ask(work);
        const bytes = work === 'generate' ? undefined : statSync(file).size / Number(rows);
        return { seconds, rows: Number(rows) / seconds / 1e6, processor, peak, 'a row': bytes };
      };
      const engines = Object.fromEntries(
        ['factorflow', ...(known.test(file) ? ['duckdb'] : [])].map((name) => [
          name,
          engineOf(module, name, [file, rows]),
        ]),
      );
      for (const work of [...(at === 0 ? ['generate'] : []), 'write', 'read']) {
        const own = Object.keys(engines).filter((name) => name === 'factorflow' || work === 'read');
        const name = work === 'generate' ? work : `${work} ${format}`;
        yield { name, engines: Object.fromEntries(own.map((engine) => [engine, () => run(engine, work)])) };
      }
      for (const engine of Object.values(engines)) await engine.close();
    }
  },
};
export default formats;
