import { chromium } from "playwright-core";
import { startService } from "./service.ts";
const s = await startService({ more: Number(process.env.MORE ?? 0) });
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({
  viewport: { width: Number(process.env.W ?? 1280), height: 800 },
  colorScheme: (process.env.S ?? "light") as "light",
});
page.on("console", (m) => console.log("console", m.type(), m.text()));
page.on("pageerror", (e) => console.log("pageerror", e.message));
await page.goto(s.url + (process.argv[2] ?? ""));
await page.waitForTimeout(1200);
await page.screenshot({ path: process.argv[3] ?? "/tmp/shot.png" });
await browser.close();
await s.close();
