/**
 * Parts of the package @sparticuz/chromium, which the project brings for its tests, unpacked below build/.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

/** Makes a folder by `fill`; it appears when it is whole, also where processes make it at the same time. */
export function makeFolder(folder: string, fill: (fresh: string) => void): void {
  const fresh = `${folder}.${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  fill(fresh);
  rmSync(folder, { recursive: true, force: true });
  renameSync(fresh, folder);
}

/** The bytes of a file of the package, without its compression. */
export function packed(name: string): Buffer {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  return brotliDecompressSync(readFileSync(join(dirname(entry), '../bin', name)));
}

/** Unpacks an archive of the package. */
export function unpackTar(name: string, folder: string): void {
  const { status, stderr, error } = spawnSync('tar', ['-x', '-C', folder], { input: packed(name) });
  if (status !== 0) throw error ?? new Error(stderr.toString());
}
