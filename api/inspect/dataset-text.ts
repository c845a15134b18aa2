import { statSync } from 'node:fs';
import type { Schema } from 'apache-arrow';
import { formatBytes } from '../../engine/format.ts';
import { knownSchema, type LogicalPlan, operatorsOf, rootSource } from '../../engine/stream/logical-plan.ts';
import { factLines, someOf } from './fact-lines.ts';

/** Most paths and columns to list. */
const MOST_PATHS = 4;
const MOST_COLUMNS = 12;

const formats: Readonly<Record<string, string>> = {
  'iterable-source': 'record batches of the caller',
  'row-source': 'plain objects of the caller',
  'text-source': 'separated text',
  'ndjson-source': 'NDJSON',
  'parquet-source': 'Parquet',
  'arrow-source': 'Arrow IPC',
};

/**
 * Describes a data set for console.log, as far as known without opening a file. `names`: its column names by
 * role, as far as given.
 */
export function datasetText(plan: LogicalPlan, names: Readonly<Record<string, string | undefined>>): string {
  const source = rootSource(plan);
  const { paths } = source.describe();
  const files = Array.isArray(paths) ? paths.map(String) : [];
  const schema = knownSchema(plan);
  const given = Object.entries(names).flatMap(([use, name]) =>
    name === undefined ? [] : [`${use} ${name}`],
  );
  const operators = operatorsOf(plan).map(({ name }) => name);
  return factLines('Dataset', {
    source: files.length > 0 ? someOf(files, MOST_PATHS) : source.name,
    format: formats[source.name],
    size: sizeOf(files),
    columns:
      schema === undefined ? 'not read yet; await dataset.schema() opens the files' : columnsOf(schema),
    names: given.length === 0 ? undefined : given.join(', '),
    operators: operators.length === 0 ? 'none' : operators.join(', '),
    read: source.replayable ? undefined : 'only once',
  });
}

/** Total size of files on disk; undefined for folders, patterns and remote files. */
function sizeOf(files: readonly string[]): string | undefined {
  const found = files.map((file) => statSync(file, { throwIfNoEntry: false }));
  if (files.length === 0 || !found.every((one) => one?.isFile())) return undefined;
  return formatBytes(found.reduce((sum, one) => sum + (one?.size ?? 0), 0));
}

function columnsOf({ fields }: Schema): string {
  return someOf(
    fields.map(({ name, type }) => `${name} ${String(type)}`),
    MOST_COLUMNS,
  );
}
