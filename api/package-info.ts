import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface PackageInfo {
  readonly name: string;
  readonly version: string;
  readonly bugs?: { readonly url: string };
}

/** factorflow's own package.json, above the sources or the build. */
export function packageInfo(): PackageInfo {
  for (
    let folder = dirname(fileURLToPath(import.meta.url));
    folder !== dirname(folder);
    folder = dirname(folder)
  ) {
    const info = readPackage(join(folder, 'package.json'));
    if (info?.name === 'factorflow') return info;
  }
  return { name: 'factorflow', version: 'unknown' };
}

/** The installed version of a dependency; undefined if it is not installed. */
export function versionOf(name: string): string | undefined {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const info = readPackage(join(folder, 'node_modules', name, 'package.json'));
    if (info !== undefined) return info.version;
    if (folder === dirname(folder)) return undefined;
  }
}

export function bugsUrl(): string {
  return packageInfo().bugs?.url ?? 'https://github.com/factorflow/factorflow/issues';
}

function readPackage(file: string): PackageInfo | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as PackageInfo) : undefined;
}
