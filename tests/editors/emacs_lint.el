;;; emacs_lint.el --- Compiles and lints the package -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs --batch -q --no-site-file -l emacs_lint.el FILE...: what is wrong, one line each; the
;; exit code tells whether anything is.  The files are copies: what is compiled lies beside them.

;;; Code:

(require 'package)
(package-initialize)
(require 'bytecomp)
(require 'checkdoc)
(require 'cl-lib)

(defvar emacs-lint-wrong 0)

(defun emacs-lint-tell (format &rest arguments)
  "Print FORMAT with ARGUMENTS as something that is wrong."
  (cl-incf emacs-lint-wrong)
  (princ (concat (apply #'format format arguments) "\n")))

(defun emacs-lint-compile (file)
  "Byte-compile FILE; every warning is an error."
  (let ((byte-compile-error-on-warn t) (byte-compile-verbose nil))
    (unless (eq (byte-compile-file file) t)
      (emacs-lint-tell "%s: not compiled without warnings" file))))

(defun emacs-lint-checkdoc (file)
  "Check the documentation strings of FILE."
  (let ((checkdoc-diagnostic-buffer "*lint*")
        (checkdoc-verb-check-experimental-flag nil) ; it wants the imperative of nouns
        (checkdoc-autofix-flag 'never))
    (with-current-buffer (find-file-noselect file)
      (cl-letf (((symbol-function 'checkdoc-error)
                 (lambda (point text &rest _)
                   (emacs-lint-tell "%s:%d: %s" file (if point (line-number-at-pos point) 1) text))))
        (checkdoc-current-buffer t)))))

(defun emacs-lint-package (file main)
  "Run package-lint over FILE of the package whose main file is MAIN."
  (defvar package-lint-main-file)
  (let ((package-lint-main-file main))
    (with-current-buffer (find-file-noselect file)
      (pcase-dolist (`(,line ,_ ,kind ,text) (package-lint-buffer))
        ;; 0.16 is older than Emacs 28.
        (unless (string-search "uninstallable in all released Emacs versions" text)
          (emacs-lint-tell "%s:%d: %s: %s" file line kind text))))))

(let* ((files (mapcar #'expand-file-name command-line-args-left))
       (main (cl-find "midfill.el" files :key #'file-name-nondirectory :test #'equal))
       (linted (require 'package-lint nil t)))
  (setq command-line-args-left nil)
  (push (file-name-directory main) load-path)
  (mapc #'emacs-lint-compile files)
  (mapc #'emacs-lint-checkdoc files)
  (when linted
    (fset 'package-lint--check-packages-installable #'ignore)
    (dolist (file files)
      (emacs-lint-package file main)))
  (princ (if linted "package-lint was run\n" "package-lint is not installed\n"))
  (kill-emacs (if (> emacs-lint-wrong 0) 1 0)))

;;; emacs_lint.el ends here
