import { render } from "preact";
import "./app.css";
import { App } from "./app";
import { startSession } from "./session";

const root = document.getElementById("app");
if (root) {
  void startSession();
  render(<App />, root);
}
