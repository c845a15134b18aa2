/** Rows, bytes and files of one part of a data set, as plain data. */
export type PartSummary = {
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
};

/** The sums part by part. */
export function addFiles(a: Readonly<Record<string, PartSummary>>, b: Readonly<Record<string, PartSummary>>): Record<string, PartSummary> {
  const sums = { ...a };
  for (const [part, { rows, bytes, files }] of Object.entries(b)) {
    const before = sums[part] ?? { rows: 0, bytes: 0, files: 0 };
    sums[part] = { rows: before.rows + rows, bytes: before.bytes + bytes, files: before.files + files };
  }
  return sums;
}
