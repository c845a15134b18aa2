/** The lock file: what is installed is what was locked, from wherever it is downloaded. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

interface Entry {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly inBundle?: boolean;
  readonly optional?: boolean;
  readonly engines?: { readonly node?: string };
}

const { packages } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8'),
) as { readonly packages: Readonly<Record<string, Entry>> };
const entries = Object.entries(packages).filter(([name, { link }]) => name !== '' && !link);

/**
 * Optional packages of the build and of an example for other platforms, whose checksums were not to be had
 * where the lock file was made.
 */
const unknown = [
  ...['darwin-arm64', 'darwin-x64', 'linux-arm64', 'win32-arm64', 'win32-x64'].map(
    (platform) => `node_modules/@yuku-toolchain/${platform}`,
  ),
  ...['android-arm64', 'darwin-arm64', 'linux-arm64-gnu', 'linux-arm64-musl', 'win32-x64-msvc'].map(
    (platform) => `node_modules/nodejs-polars-${platform}`,
  ),
];

test('every entry has a checksum', () => {
  const without = entries.filter(([, { integrity, inBundle }]) => !inBundle && !integrity);
  expect(without.map(([name]) => name)).toEqual(unknown);
  for (const [name, { integrity }] of entries)
    if (integrity !== undefined) expect(integrity, name).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
});

test('no entry has a download address', () => {
  expect(entries.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});

// npm leaves such a package out where the Node that runs npm is older; programs run with the project's own.
test('no optional package asks for a newer Node than the system may have', () => {
  const asking = entries.filter(([, { optional, engines }]) => {
    const least = Number(engines?.node?.match(/^>=? ?v?(\d+)/)?.[1] ?? 0);
    return optional && least > 20;
  });
  expect(asking.map(([name]) => name)).toEqual([]);
});
