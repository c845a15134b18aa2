/**
 * Draws a report as a picture, for pages of docs/: node scripts/draw-report.ts PAGE.html PICTURE.png [HEIGHT
 * [SECTION]]. SECTION is the id of the section at the top; default: the top of the page.
 */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Chromium, prepareChromium } from '../test/support/browser/chromium.ts';

/** Pixels across: the width of a page's column. */
const WIDTH = 892;

const [page, picture, height = '640', section] = process.argv.slice(2);
const refusal = prepareChromium();
if (refusal !== undefined) throw new Error(refusal);
const browser = await Chromium.open();
try {
  await browser.show(pathToFileURL(resolve(page)).href, { width: WIDTH, height: Number(height) });
  if (section !== undefined)
    await browser.value(`document.getElementById(${JSON.stringify(section)}).scrollIntoView()`);
  writeFileSync(picture, await browser.picture());
} finally {
  await browser.close();
}
