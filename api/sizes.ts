import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';

const factors: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1024,
  kib: 1024,
  kb: 1000,
  m: 1024 ** 2,
  mib: 1024 ** 2,
  mb: 1000 ** 2,
  g: 1024 ** 3,
  gib: 1024 ** 3,
  gb: 1000 ** 3,
  t: 1024 ** 4,
  tib: 1024 ** 4,
  tb: 1000 ** 4,
};

/** Parses a size into bytes: 4GiB, 500MB, 1.5g, 1000000. Throws UsageError. */
export function parseSize(size: string | number, name: string): number {
  const isText = typeof size === 'string' || typeof size === 'number';
  const match = /^\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*$/i.exec(isText ? String(size) : '');
  const factor = match ? factors[match[2].toLowerCase()] : undefined;
  const bytes = match && factor ? Math.floor(Number(match[1]) * factor) : Number.NaN;
  if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw new UsageError(`${name} must be a size such as 4GiB or 500MB, got ${isText ? size : shown(size)}`);
}
