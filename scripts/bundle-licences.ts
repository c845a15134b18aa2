/** Licences of the packages whose code a bundle has: it must hold them. */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** The licence of each package that one of the modules belongs to, as one text. */
export async function licences(modules: readonly string[]): Promise<string> {
  const folders = new Set(modules.flatMap((id) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []).filter((path) => !path.includes('/.cache')));
  const texts = await Promise.all([...folders].sort().map(async (path) => {
    const { name, version, license } = JSON.parse(await readFile(`${path}/package.json`, 'utf8')) as { readonly name: string; readonly version: string; readonly license?: string };
    const [file] = globSync('{LICENSE,LICENCE,license}*', { cwd: path });
    if (file === undefined && license === undefined) throw new Error(`${path} names no licence`);
    return `${name} ${version}\n\n${file === undefined ? `${license} licence` : (await readFile(`${path}/${file}`, 'utf8')).trim()}\n`;
  }));
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}
