/** The entry of a worker thread that copies row groups of an existing data set. */
import { type Schema, tableFromIPC } from 'apache-arrow';
import { readRowGroups, type RowGroupRequest } from '../../connectors/parquet/parquet-source.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { writePartFiles } from '../parts/part-files.ts';
import { ownWorkerData, partWorker } from '../parts/part-worker.ts';
import type { CopyGroup, CopyLayout } from './copies.ts';
import { copiedSchema, copyStream } from './copy-batch.ts';

export interface CopyWorkerData {
  readonly folder: string;
  readonly layout: CopyLayout;
  /** Schemas by part, each as an Arrow IPC stream without rows. */
  readonly schemas: Readonly<Record<string, Uint8Array>>;
}

/** Row groups of one file and some of their copies, which make one file. */
export interface CopyRequest {
  readonly part: string;
  readonly rows: RowGroupRequest;
  readonly group: CopyGroup;
  readonly number: number;
}

const { folder, layout, schemas } = ownWorkerData<CopyWorkerData>();

export default partWorker<CopyRequest>(async ({ part, rows, group, number }, stop): Promise<TaskOutcome> => {
  const stored: Schema = tableFromIPC(schemas[part]).schema;
  const schema = copiedSchema(stored, layout);
  const source = async function* () {
    // The rows are read again for every copy: that is cheap compared with writing, and a row group may be too
    // large to keep.
    for await (const batch of readRowGroups(rows, stored)) yield { part, batch };
  };
  const files = await writePartFiles(copyStream(source, schema, layout, group), {
    folder,
    parts: [part],
    number,
    schema,
    stop,
  });
  return { rows: files?.[part].rows ?? 0, values: { parts: { ...files } } };
});
