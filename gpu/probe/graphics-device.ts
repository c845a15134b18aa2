import { existsSync, readdirSync } from 'node:fs';

/**
 * Whether the system has what a GPU's driver needs: on Linux a render node, NVIDIA's or WSL's device file. Elsewhere it may
 * well have, and only a probe can tell. A container that a graphics card is not passed into has none.
 */
export function hasGraphicsDevice(platform: NodeJS.Platform = process.platform): boolean {
  if (platform !== 'linux') return true;
  if (existsSync('/dev/dxg')) return true;
  return names('/dev').some((name) => /^nvidia\d/.test(name)) || names('/dev/dri').some((name) => name.startsWith('renderD'));
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
