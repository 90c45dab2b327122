;;; midfill-sync.el --- Keeps the server's copy of a buffer right -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Documents of midfill's own connection: opened, changed, saved, closed.
;;
;; A hidden buffer holds what the server has.  Changes only widen the region
;; that is not known to be the same any more, counted from both ends of the
;; buffer; it is sent when the server is asked something.  So little depends
;; on how Emacs reports changes: where it has not reported one (the tick tells)
;; the whole text is sent.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'url-util)

(cl-defstruct (midfill-document (:copier nil))
  "What the server has of a buffer."
  (connection nil :documentation "a `jsonrpc-connection' whose columns are characters")
  (uri "" :documentation "its name there")
  (copy nil :documentation "the hidden buffer")
  (version 0 :documentation "of the last change that was sent")
  (head 0 :documentation "characters at the beginning that are the same")
  (tail 0 :documentation "characters at the end that are the same")
  (tick 0 :documentation "`buffer-chars-modified-tick' up to which changes are accounted for"))

(defvar-local midfill-sync-document nil
  "What midfill's own server has of this buffer.")
(put 'midfill-sync-document 'permanent-local t)

(defun midfill-sync-uri (file)
  "FILE as a URI."
  (let ((path (expand-file-name file)))
    (concat "file://" (if (string-prefix-p "/" path) "" "/") (url-hexify-string path (cons ?/ url-unreserved-chars)))))

(defconst midfill-sync--language-ids
  '((bash . "shellscript") (c++ . "cpp") (js . "javascript") (js-jsx . "javascriptreact") (js2 . "javascript")
    (cperl . "perl") (emacs-lisp . "lisp") (js-json . "json") (latex . "latex") (LaTeX . "latex") (mhtml . "html")
    (objc . "objective-c") (sh . "shellscript") (tsx . "typescriptreact") (conf-toml . "toml") (ess-r . "r"))
  "Names of modes whose language has another name in LSP.")

(defun midfill-sync--language-id ()
  "The name of the buffer's language."
  (let ((name (replace-regexp-in-string "\\(-ts\\)?-mode\\'" "" (symbol-name major-mode))))
    (or (alist-get (intern name) midfill-sync--language-ids) (downcase name))))

;; A carriage return ends a line for the server, but not for Emacs.
(defun midfill-sync--text (start end)
  "The text between START and END as JSON can hold it, one for each character."
  (replace-regexp-in-string
   "[^\0-\f\016-\ud7ff\ue000-\U0010ffff]"
   (lambda (found) (if (equal found "\r") " " "\ufffd"))
   (buffer-substring-no-properties start end) t t))

(defun midfill-sync--same ()
  "Note that the server has all of the current buffer."
  (let ((document midfill-sync-document))
    (setf (midfill-document-head document) (buffer-size)
          (midfill-document-tail document) (buffer-size)
          (midfill-document-tick document) (buffer-chars-modified-tick))))

(defun midfill-sync--account ()
  "Find out whether there was a change that Emacs has not reported."
  (when-let* ((document midfill-sync-document))
    (unless (= (midfill-document-tick document) (buffer-chars-modified-tick))
      (setf (midfill-document-head document) 0
            (midfill-document-tail document) 0
            (midfill-document-tick document) (buffer-chars-modified-tick)))))

(defun midfill-sync--changing (&rest _)
  "Account for what was before the change that is about to be made."
  (midfill-sync--account))

(defun midfill-sync--changed (start end _length)
  "Note that the text between START and END is new."
  (when-let* ((document midfill-sync-document))
    (cl-callf min (midfill-document-head document) (1- start))
    (cl-callf min (midfill-document-tail document) (- (1+ (buffer-size)) end))
    (setf (midfill-document-tick document) (buffer-chars-modified-tick))))

(defun midfill-sync--notify (method &rest params)
  "Tell the server METHOD, with PARAMS behind the document's name."
  (when-let* ((document midfill-sync-document))
    (midfill-sync-tell (midfill-document-connection document) method
                       `(:textDocument (:uri ,(midfill-document-uri document)) ,@params))))

(defun midfill-sync-if-running (connection send)
  "Call SEND, which sends to CONNECTION, unless its server is ending.
Emacs knows that only when it tries, or has found the time to look."
  (when (jsonrpc-running-p connection)
    (condition-case failed
        (funcall send)
      (error (when (jsonrpc-running-p connection)
               (signal (car failed) (cdr failed)))))))

(defun midfill-sync-tell (connection method params)
  "Notify CONNECTION of METHOD with PARAMS."
  (midfill-sync-if-running connection (lambda () (jsonrpc-notify connection method params))))

(defun midfill-sync-open (connection)
  "Let the server of CONNECTION know the current buffer."
  (midfill-sync-close)
  (save-restriction
    (widen)
    (let ((text (midfill-sync--text (point-min) (point-max)))
          (uri (midfill-sync-uri buffer-file-name)))
      (setq midfill-sync-document
            (make-midfill-document
             :connection connection :uri uri
             :copy (with-current-buffer (generate-new-buffer " *midfill document*")
                     (buffer-disable-undo)
                     (insert text)
                     (current-buffer))))
      (midfill-sync--same)
      (midfill-sync-tell connection :textDocument/didOpen
                         `(:textDocument (:uri ,uri :languageId ,(midfill-sync--language-id) :version 0 :text ,text)))))
  (add-hook 'before-change-functions #'midfill-sync--changing nil t)
  (add-hook 'after-change-functions #'midfill-sync--changed nil t)
  (add-hook 'after-save-hook #'midfill-sync--saved nil t)
  (add-hook 'clone-indirect-buffer-hook #'midfill-sync--cloned nil t))

(defun midfill-sync--cloned ()
  "Have an indirect buffer know nothing of the document of its base."
  (setq midfill-sync-document nil))

(defun midfill-sync-close ()
  "Let the server forget the current buffer."
  (when midfill-sync-document
    (midfill-sync--notify :textDocument/didClose)
    (kill-buffer (midfill-document-copy midfill-sync-document))
    (setq midfill-sync-document nil)))

(defun midfill-sync--saved ()
  "Tell the server that the buffer is saved."
  (midfill-sync-send)
  (midfill-sync--notify :textDocument/didSave))

(defun midfill-sync--position (place)
  "PLACE as a position of LSP, in characters; the buffer is widened."
  (save-excursion
    (goto-char place)
    (let ((inhibit-field-text-motion t))
      (list :line (1- (line-number-at-pos nil t)) :character (- place (line-beginning-position))))))

(defun midfill-sync--take (start end text)
  "Have TEXT in place of START to END in the copy.  Return the range that this was."
  (with-current-buffer (midfill-document-copy midfill-sync-document)
    (prog1 (list :start (midfill-sync--position start) :end (midfill-sync--position end))
      (goto-char start)
      (delete-region start end)
      (insert text))))

(defun midfill-sync-send ()
  "Tell the server how the current buffer has changed, if it has."
  (midfill-sync--account)
  (when-let* ((document midfill-sync-document))
    (save-restriction
      (widen)
      (let* ((size (buffer-size))
             (old (buffer-size (midfill-document-copy document)))
             (head (min (midfill-document-head document) size old))
             (tail (min (midfill-document-tail document) (- size head) (- old head))))
        (unless (= head size old)
          (let* ((text (midfill-sync--text (1+ head) (- (1+ size) tail)))
                 (range (midfill-sync--take (1+ head) (- (1+ old) tail) text)))
            (midfill-sync--same)
            (midfill-sync-tell
             (midfill-document-connection document) :textDocument/didChange
             `(:textDocument (:uri ,(midfill-document-uri document) :version ,(cl-incf (midfill-document-version document)))
               :contentChanges [(:range ,range :text ,text)]))))))))

(provide 'midfill-sync)
;;; midfill-sync.el ends here
