/** The oldest Node that runs FactorFlow, as in package.json's "engines". */
const OLDEST = [22, 12] as const;

/** The message, without its subject, for a Node that cannot run FactorFlow; undefined for one that can. */
export function unfitNode(): string | undefined {
  const noWasm = 'needs WebAssembly, which Node lacks when it runs with --jitless. Leave that flag out';
  return tooOldNode(process.versions.node) ?? (typeof WebAssembly === 'undefined' ? noWasm : undefined);
}

/**
 * The message, without its subject, for a Node version that is too old ("20.1.0"); undefined for one that is
 * new enough.
 */
export function tooOldNode(version: string): string | undefined {
  const [major, minor] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined;
  return `needs Node ${OLDEST.join('.')} or newer, and this is ${version}. Install a newer one from https://nodejs.org, or give your project its own: after npm install node@24, npx and npm scripts there run with it`;
}
