import type { Schema } from 'apache-arrow';
import type { ParquetFileInfo } from '../../connectors/parquet/backend.ts';

export interface DatasetLayout {
  readonly paths: readonly string[];
  readonly files: number;
  readonly bytes: number;
  readonly rows: number;
  readonly rowGroups: number;
}

export interface ColumnDescription {
  readonly name: string;
  /** Arrow's name for the type. */
  readonly type: string;
  readonly nullable: boolean;
  /** Codecs of the row groups; empty for a column from folder names. */
  readonly codecs: readonly string[];
  /** Stored bytes. */
  readonly bytes: number;
}

export function layoutOf(paths: readonly string[], files: readonly ParquetFileInfo[]): DatasetLayout {
  const sum = (of: (file: ParquetFileInfo) => number) => files.reduce((total, file) => total + of(file), 0);
  return {
    paths,
    files: files.length,
    bytes: sum(({ bytes }) => bytes),
    rows: sum(({ rows }) => rows),
    rowGroups: sum(({ rowGroups }) => rowGroups.length),
  };
}

/**
 * Columns with their stored bytes. The chunks of a nested column ("features.list.element") count for its root
 * column.
 */
export function describeColumns(schema: Schema, files: readonly ParquetFileInfo[]): ColumnDescription[] {
  return schema.fields.map(({ name, type, nullable }) => {
    const codecs = new Set<string>();
    let bytes = 0;
    for (const { rowGroups } of files) {
      for (const { columns } of rowGroups) {
        for (const chunk of columns) {
          if (chunk.column !== name && !chunk.column.startsWith(`${name}.`)) continue;
          codecs.add(chunk.codec);
          bytes += chunk.bytes;
        }
      }
    }
    return { name, type: String(type), nullable, codecs: [...codecs].sort(), bytes };
  });
}
