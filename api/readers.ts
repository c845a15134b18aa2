import { ArrowSource } from '../connectors/arrow/arrow-source.ts';
import { NdjsonSource } from '../connectors/ndjson/ndjson-source.ts';
import { openSource } from '../connectors/open-source.ts';
import type { ParquetBackendName } from '../connectors/parquet/backend.ts';
import { ParquetSource } from '../connectors/parquet/parquet-source.ts';
import { TextSource } from '../connectors/text/text-source.ts';
import { type Dataset, datasetOf } from './dataset.ts';
import {
  conditionOf,
  type ReadAnyOptions,
  type ReadArrowOptions,
  readingOf,
  type ReadNdjsonOptions,
  type ReadParquetOptions,
  type ReadTextOptions,
} from './reading.ts';
import type { RunSession } from './run-session.ts';

/** Readers of files. Nothing is opened until the rows or their schema are requested. */
export class Readers {
  readonly #session: RunSession;
  readonly #parquetBackend: ParquetBackendName | undefined;

  constructor(session: RunSession, parquetBackend?: ParquetBackendName) {
    [this.#session, this.#parquetBackend] = [session, parquetBackend];
    // Readers also work detached: `const { parquet } = session.read`.
    this.parquet = this.parquet.bind(this);
    this.csv = this.csv.bind(this);
    this.text = this.text.bind(this);
    this.ndjson = this.ndjson.bind(this);
    this.arrow = this.arrow.bind(this);
    this.any = this.any.bind(this);
  }

  /** Parquet: a file, a folder of part files, a glob, folders such as `year=1999`, or several of them. */
  parquet(paths: string | readonly string[], options: ReadParquetOptions = {}): Dataset {
    const { source, names } = readingOf('read.parquet', options);
    const { filter, partitions } = source;
    const parquet = new ParquetSource(paths, { backend: this.#parquetBackend, partitions });
    const rows = datasetOf(this.#session, parquet, names);
    return filter === undefined ? rows : rows.filter(conditionOf(filter));
  }

  /** Comma-separated text, plain or compressed; header and types are detected unless given. */
  csv(paths: string | readonly string[], options: ReadTextOptions = {}): Dataset {
    const { source, names } = readingOf('read.csv', options);
    return datasetOf(this.#session, new TextSource(paths, { delimiter: ',', ...source }), names);
  }

  /** Text with any delimiter, detected unless given: CSV, TSV, "::" and others. */
  text(paths: string | readonly string[], options: ReadTextOptions = {}): Dataset {
    const { source, names } = readingOf('read.text', options);
    return datasetOf(this.#session, new TextSource(paths, source), names);
  }

  /**
   * NDJSON: one JSON object a line, plain or compressed like text; fields and types are detected unless
   * given.
   */
  ndjson(paths: string | readonly string[], options: ReadNdjsonOptions = {}): Dataset {
    const { source, names } = readingOf('read.ndjson', options);
    return datasetOf(this.#session, new NdjsonSource(paths, source), names);
  }

  /** Arrow IPC, file (Feather too) or stream format; "-" is stdin. */
  arrow(paths: string | readonly string[], options: ReadArrowOptions = {}): Dataset {
    const { source, names } = readingOf('read.arrow', options);
    return datasetOf(this.#session, new ArrowSource(paths, source), names);
  }

  /** Files of any of these formats, recognized by ending and first bytes, which are read immediately. */
  async any(paths: string | readonly string[], options: ReadAnyOptions = {}): Promise<Dataset> {
    const { source, names } = readingOf('read.any', options);
    using _ = this.#session.beginPhase('open files');
    const opened = await openSource(paths, { parquetBackend: this.#parquetBackend, ...source });
    return datasetOf(this.#session, opened, names);
  }
}
