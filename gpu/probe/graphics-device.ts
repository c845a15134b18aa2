import { existsSync, readdirSync } from 'node:fs';

/**
 * True when a GPU's driver could work. On Linux: a render node, NVIDIA's or WSL's device file exists, which a
 * container has only when a graphics card is passed in. Elsewhere always true: only a probe can find out.
 */
export function hasGraphicsDevice(platform: NodeJS.Platform = process.platform): boolean {
  if (platform !== 'linux') return true;
  if (existsSync('/dev/dxg')) return true;
  return (
    names('/dev').some((name) => /^nvidia\d/.test(name)) ||
    names('/dev/dri').some((name) => name.startsWith('renderD'))
  );
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
