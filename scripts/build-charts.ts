/**
 * Bundles the libraries that draw reports (Observable Plot, dagre, and linkedom, the document they draw into)
 * into one file, which the package contains with their licences, so that users install nothing more. Writes
 * cli/generated/charts.js with its types, and the same to dist/.
 */
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { licencesOf } from './bundle-page.ts';
import { writeChanged } from './write-changed.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const [folder, dist] = [`${root}cli/generated/`, `${root}dist/cli/generated/`];
const marks = 'barX, dot, line, lineY, link, plot, ruleX, ruleY, text';
const others = `export { parseHTML } from 'linkedom';\nexport { Graph, layout } from '@dagrejs/dagre';\n`;

await mkdir(dist, { recursive: true });
const entry = `${root}node_modules/.cache/charts-entry.js`;
await mkdir(`${root}node_modules/.cache`, { recursive: true });
await writeFile(
  entry,
  `import { ${marks} } from '@observablehq/plot';\nexport const Plot = { ${marks} };\n${others}`,
);
const bundle = await rolldown({ input: entry, platform: 'node', treeshake: true, logLevel: 'silent' });
const { output } = await bundle.generate({ format: 'esm', minify: true, codeSplitting: false });
const [{ code, moduleIds }] = output;
await bundle.close();
writeChanged(
  'cli/generated/charts.js',
  `/* Made by scripts/build-charts.ts; the licences are in charts.LICENSES.txt. */\n${code}`,
);
writeChanged('cli/generated/charts.d.ts', `export * as Plot from '@observablehq/plot';\n${others}`);
const packages = new Set(
  moduleIds.flatMap((id) => /^.*node_modules\/((?:@[^/]+\/)?[a-z][^/]*)/.exec(id)?.[1] ?? []),
);
writeChanged('cli/generated/charts.LICENSES.txt', await licencesOf([...packages].sort()));
for (const file of ['charts.js', 'charts.LICENSES.txt']) await copyFile(folder + file, dist + file);
console.log(`cli/generated/charts.js: ${Math.round(code.length / 1024)} KiB of ${moduleIds.length} modules`);
