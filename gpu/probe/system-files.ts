import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The names in a system folder; empty if it does not exist or may not be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The text of a system file; empty if it does not exist or may not be read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/**
 * False if no GPU driver can work here. On Linux, true if a render node, NVIDIA's device file or WSL's
 * device file exists; a container has them only if a graphics card was passed in. On other systems always
 * true: only a probe can find out.
 */
export function hasGraphicsDevice(platform: NodeJS.Platform = process.platform): boolean {
  if (platform !== 'linux') return true;
  if (existsSync('/dev/dxg')) return true;
  return (
    namesIn('/dev').some((name) => /^nvidia\d/.test(name)) ||
    namesIn('/dev/dri').some((name) => name.startsWith('renderD'))
  );
}
