/** Hive's and Spark's folder name of null. */
export const NULL_VALUE = '__HIVE_DEFAULT_PARTITION__';

/**
 * Characters that cannot be in a folder's name: ASCII characters that Spark and Hive write as % and two
 * hexadecimal digits, and NUL.
 */
// oxlint-disable-next-line no-control-regex
const ESCAPED = /[\0-\x1f"#%'*/:=?\\\x7f{[\]^]/g;

/** Folder name of a value: `genre=Sci-Fi%2FHorror`. Null and the empty text have the same folder. */
export function folderName(column: string, value: string | null): string {
  return `${escapedName(column)}=${escapedValue(value)}`;
}

/**
 * The column's name, escaped. A dot at its beginning is escaped, too, since readers skip folders that start
 * with a dot.
 */
function escapedName(column: string): string {
  return escaped(column).replace(/^\./, '%2E');
}

function escapedValue(value: string | null): string {
  if (value === null || value === '') return NULL_VALUE;
  return value === NULL_VALUE ? value.replace('_', '%5F') : escaped(value);
}

function escaped(text: string): string {
  return text.replace(
    ESCAPED,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}

/** Column and value from a folder's name; undefined for other folders. */
export function readFolderName(
  folder: string,
): { readonly column: string; readonly value: string | null } | undefined {
  const at = folder.indexOf('=');
  if (at <= 0) return undefined;
  const value = folder.slice(at + 1);
  return { column: decoded(folder.slice(0, at)), value: value === NULL_VALUE ? null : decoded(value) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
