import * as zlib from 'node:zlib';
import { UsageError } from '../../engine/errors.ts';
import { requirePath } from '../files/path-kinds.ts';

/** Compressions of whole files. */
export const compressions = ['none', 'gzip', 'zstd', 'lz4'] as const;
export type Compression = (typeof compressions)[number];

const endings: readonly (readonly [ending: string, Compression])[] = [
  ['.gz', 'gzip'],
  ['.zst', 'zstd'],
  ['.zstd', 'zstd'],
  ['.lz4', 'lz4'],
];

/** "ratings.csv.gz" -> gzip and "ratings.csv". */
export function compressionOf(path: string): { readonly compression: Compression; readonly bare: string } {
  requirePath(path, 'write');
  const found = endings.find(([ending]) => path.toLowerCase().endsWith(ending));
  return found === undefined
    ? { compression: 'none', bare: path }
    : { compression: found[1], bare: path.slice(0, -found[0].length) };
}

/** ".gz" for gzip; empty for files that are not compressed. */
export function endingOf(compression: Compression): string {
  return endings.find(([, name]) => name === compression)?.[0] ?? '';
}

/** The extensions, alone and followed by each extension of a compression. */
export function withCompressed(extensions: readonly string[]): string[] {
  return ['', ...endings.map(([ending]) => ending)].flatMap((ending) =>
    extensions.map((extension) => extension + ending),
  );
}

/** Throws UsageError if this Node lacks zstd, which it has since 22.15. */
export function requireZstd(phase: 'read' | 'write', file: string): void {
  if (hasZstd()) return;
  throw new UsageError(`zstd needs Node 22.15 or newer, and this is ${process.versions.node}`, {
    phase,
    file,
    advice: 'Update Node, or use gzip or lz4',
  });
}

export function hasZstd(): boolean {
  return typeof zlib.createZstdDecompress === 'function';
}
