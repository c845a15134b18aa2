/** Name of a part file: "part-00000.parquet", ... */
export function partName(part: number): string {
  return `part-${String(part).padStart(5, '0')}.parquet`;
}

/**
 * True for a path inside a data set of this or another engine: Parquet files, name=value folders, _SUCCESS
 * and checksums.
 */
export function isDatasetEntry(path: string): boolean {
  const segments = path.split('/').filter((segment) => segment !== '');
  const name = segments.pop() ?? '';
  if (!segments.every((folder) => folder.includes('='))) return false;
  if (path.endsWith('/')) return name.includes('=');
  return (
    /\.(parquet|parq|pq)$/i.test(name) ||
    /^\..*\.crc$/.test(name) ||
    ['_SUCCESS', '_metadata', '_common_metadata'].includes(name)
  );
}
